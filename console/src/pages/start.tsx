import { Alert, Button, Group, NumberInput, Paper, Stack, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { ApiError, call } from '../api/client'
import { listQuery, useStatus } from '../api/state'
import { CodeBlock, Page, To } from '../parts/bits'
import { useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'

interface Step {
  title: string
  why: string
  path: string
  body?: unknown
  wait?: boolean
}

interface Done {
  took: number
  lagging: { proxy?: string; message: string }[]
}

// StartPage leads from nothing to a request.
export function StartPage() {
  const queries = useQueryClient()
  const status = useStatus()
  const proxies = useQuery(listQuery('/proxy', {}))
  const curl = useCurl()
  const [name, setName] = useState('web')
  const [address, setAddress] = useState('127.0.0.1')
  const [port, setPort] = useState<number | string>('')
  const [host, setHost] = useState('*')
  const [at, setAt] = useState(-1)
  const [error, setError] = useState<{ step: number; problem: ApiError | Error }>()
  const [done, setDone] = useState<Done>()
  const existing = proxies.data?.rows[0]
  const proxy = String(existing?.name ?? status.data?.waiting_nodes[0]?.node ?? 'gw')
  // The calls stay what they were when the first one was made, although they make the proxy.
  const [begun, setBegun] = useState<Step[]>()
  const planned: Step[] = [
    { title: `Upstream ${name}`, why: 'the backend that answers', path: '/upstream', body: { upstream_name: name, upstream_ip: address, upstream_port: Number(port) } },
    { title: `Service ${name}`, why: `the host ${host === '*' ? '*, which is any' : host}`, path: '/service', body: { service_name: name, fqdn: host } },
    { title: 'Route root', why: 'every path of the host', path: `/service/${name}/route`, body: { route_name: 'root', route_prefix: '/' } },
    { title: 'Attach the upstream', why: 'the route sends its requests there', path: `/service/${name}/route/root/upstream/${name}` },
    ...(existing ? [] : [{ title: `Proxy ${proxy}`, why: 'the ports on which Envoys of this name listen', path: '/proxy', body: { name: proxy } }]),
    { title: 'Attach the service', why: `the Envoys of ${proxy} serve it`, path: `/proxy/${proxy}/service/${name}`, wait: true },
  ]
  const steps = begun && !error ? begun : planned
  const run = async (e: FormEvent) => {
    e.preventDefault()
    setError(undefined)
    const from = error ? error.step : 0
    const steps = from > 0 && begun ? [...begun.slice(0, from), ...planned.slice(planned.length - begun.length + from)] : planned
    setBegun(steps)
    for (let i = from; i < steps.length; i++) {
      setAt(i)
      const began = performance.now()
      try {
        const a = await call<{ data?: { lagging?: Done['lagging'] } }>('POST', steps[i].path, { body: steps[i].body, query: steps[i].wait ? { wait: 'applied', timeout: '20s' } : {} })
        if (steps[i].wait) setDone({ took: Math.round(performance.now() - began), lagging: a.body.data?.lagging ?? [] })
      } catch (e) {
        setError({ step: i, problem: e as Error })
        return
      }
    }
    setAt(steps.length)
    await queries.invalidateQueries()
  }
  const listen = existing ?? proxies.data?.rows.find((r) => r.name === proxy)
  const ip = String(listen?.listen_ip ?? '127.0.0.1')
  const where = `http://${ip === '0.0.0.0' ? location.hostname : ip}:${String(listen?.http_port ?? 8080)}/`
  const line = `curl -i ${host === '*' ? '' : `-H 'Host: ${host}' `}${where}`
  const busy = at >= 0 && at < steps.length && !error
  return (
    <Page title="First steps" icon="play" lead="From nothing to a request through Envoy: a backend, a host name, and the calls between them.">
      <div className="two">
        <Paper component="form" onSubmit={(e) => void run(e as unknown as FormEvent)}>
          <Stack>
            <TextInput label="Name" description="Of the service and its backend" value={name} onChange={(e) => setName(e.currentTarget.value)} required disabled={at >= 0} />
            <Group grow align="flex-start">
              <TextInput label="Address of the backend" description="An IP address or a DNS name" value={address} onChange={(e) => setAddress(e.currentTarget.value)} required disabled={at > 0 && !error} />
              <NumberInput label="Its port" description="Where it listens" value={port} onChange={setPort} min={1} max={65535} required hideControls placeholder="9000" disabled={at > 0 && !error} />
            </Group>
            <TextInput label="Host name" description="* is any host" value={host} onChange={(e) => setHost(e.currentTarget.value)} required disabled={at > 1 && !error} />
            {error && (
              <Alert color="red" icon={<Icon name="alert" />} title={`${steps[error.step].title} was refused`} role="alert">
                {error.problem.message}
                {error.problem instanceof ApiError && error.problem.problem.errors?.map((x) => <Text size="sm" key={x.field}>{x.field}: {x.message}</Text>)}
              </Alert>
            )}
            {at < steps.length && <Group justify="flex-end"><Button type="submit" loading={busy} disabled={!name || !address || !port || !host}>{error ? 'Continue' : `Make these ${steps.length} calls`}</Button></Group>}
            {done && at === steps.length && (
              <Alert color={done.lagging.length ? 'yellow' : 'teal'} icon={<Icon name={done.lagging.length ? 'alert' : 'check'} />} title={done.lagging.length ? 'Stored, and not live yet' : `Live after ${done.took} ms`} role="status">
                {done.lagging.map((l) => <Text size="sm" key={l.message}>{l.proxy}: {l.message}</Text>)}
                <Text size="sm">Send it a request:</Text>
              </Alert>
            )}
            {at === steps.length && (
              <>
                <CodeBlock text={line} label="the request" />
                <Group>
                  <Button component={Link} to="/explain" search={{ proxy, url: where.replace(/\/\/[^:/]+/, host === '*' ? '$&' : `//${host.replace('*', 'a')}`) } as never} variant="default">Explain this request</Button>
                  <Button component={Link} to={`/service/${name}`} variant="default">Open the service</Button>
                </Group>
              </>
            )}
          </Stack>
        </Paper>
        <ol className="calls">
          {steps.map((s, i) => {
            const state = error?.step === i ? 'wrong' : i < at ? 'done' : i === at && !error ? 'now' : 'next'
            return (
              <li key={s.title} data-state={state}>
                <span className="call-mark"><Icon name={state === 'done' ? 'check' : state === 'wrong' ? 'alert' : 'right'} size={14} /></span>
                <div>
                  <Text size="sm" fw={600}>{s.title}{state === 'done' && s.path.split('/').length < 4 ? <> <To path={`${s.path}/${String(Object.values(s.body ?? {})[0])}`}>open</To></> : null}</Text>
                  <Text size="xs" c="dimmed">{s.why}</Text>
                  <pre className="call-line">{curl('POST', s.path, { body: s.body, query: s.wait ? { wait: 'applied' } : {} })}</pre>
                </div>
              </li>
            )
          })}
        </ol>
      </div>
    </Page>
  )
}
