import { Accordion, Alert, Badge, Button, Group, Paper, Select, Stack, Table, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import { api, rowsOf, type Schemas, typed } from '../api/client'
import { listQuery } from '../api/state'
import { parseCurl } from '../api/curlline'
import { Empty, Failure, Page, Section, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'

type Explanation = Schemas['Explanation']

interface Search {
  proxy?: string
  method?: string
  url?: string
  header?: string[]
  address?: string
}

const formOf = (s: Search) => ({ method: s.method ?? 'GET', url: s.url ?? '', headers: (s.header ?? []).join('\n'), address: s.address ?? '' })

const linesOf = (text: string) => {
  const lines = text.split('\n').map((l) => l.trim()).filter(Boolean)
  return lines.length > 0 ? lines : undefined
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT']

export function ExplainPage() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const curl = useCurl()
  const proxies = useQuery(listQuery('/proxy', {}))
  const names = (proxies.data?.rows ?? []).map((r) => String(r.name))
  const proxy = search.proxy ?? names[0] ?? ''
  const [form, setForm] = useState(formOf(search))
  useEffect(() => {
    setForm(formOf(search))
  }, [search])
  const query = { url: search.url ?? '', method: search.method, header: search.header, address: search.address || undefined }
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['live', 'explain', proxy, query],
    enabled: Boolean(search.url && proxy),
    queryFn: async ({ signal }) => rowsOf<Explanation>(typed(await api.GET('/proxy/{proxy}/explain', { params: { path: { proxy }, query }, signal }))),
  })
  const ask = (e?: FormEvent) => {
    e?.preventDefault()
    const url = /^[a-z]+:\/\//i.test(form.url) ? form.url : `http://${form.url}`
    void navigate({ to: '/explain', search: { proxy: proxy || undefined, method: form.method === 'GET' ? undefined : form.method, url, header: linesOf(form.headers), address: form.address || undefined } } as never)
  }
  const paste = (text: string): boolean => {
    const parsed = parseCurl(text)
    if (parsed) setForm({ ...form, ...parsed, headers: parsed.headers.join('\n') })
    return parsed !== undefined
  }
  return (
    <Page title="Explain" icon="explain" lead="What the Envoys do with a request, and why. Nothing is sent." aside={search.url && proxy && <CopyCurl line={curl('GET', `/proxy/${proxy}/explain`, { query })} />}>
      <Paper component="form" onSubmit={(e) => ask(e as unknown as FormEvent)}>
        <Stack gap="sm">
          <div className="request-line">
            <Select label="Proxy" data={names} value={proxy || null} onChange={(v) => void navigate({ to: '/explain', search: { ...search, proxy: v ?? undefined } } as never)} allowDeselect={false} />
            <Select label="Method" data={methods.includes(form.method) ? methods : [...methods, form.method]} value={form.method} onChange={(v) => setForm({ ...form, method: v ?? 'GET' })} allowDeselect={false} />
            <TextInput
              label="URL, or a curl line" placeholder="http://shop.example.com/cart" required value={form.url} data-search className="grow"
              onChange={(e) => { const text = e.currentTarget.value; if (!paste(text)) setForm({ ...form, url: text }) }}
            />
            <Button type="submit" loading={isFetching} disabled={!form.url.trim() || !proxy}>Explain</Button>
          </div>
          <Group align="flex-start" grow>
            <Textarea label="Headers" placeholder={'x-tier: gold\nauthorization: Bearer ...'} autosize minRows={1} maxRows={8} value={form.headers} onChange={(e) => setForm({ ...form, headers: e.currentTarget.value })} className="mono-input" />
            <TextInput label="Address of the client" placeholder="127.0.0.1" value={form.address} onChange={(e) => setForm({ ...form, address: e.currentTarget.value })} />
          </Group>
        </Stack>
      </Paper>
      {proxies.data && names.length === 0 && <Empty icon="proxy" title="There is no proxy">A request needs a proxy that receives it.</Empty>}
      {!search.url && names.length > 0 && <Empty icon="explain" title="Which request?">Type a URL as a client would use it, or paste the curl line of a colleague.</Empty>}
      {error && <Failure error={error} retry={() => void refetch()} />}
      {search.url && isFetching && !data && <Waiting rows={6} />}
      {data?.map((e, i) => <Answer key={i} e={e} of={data.length} url={search.url ?? ''} search={search} />)}
    </Page>
  )
}

const fine = new Set(['forwarded', 'direct_response', 'redirected', 'passed_on', 'preflight', 'login_callback', 'signed_out'])

function Answer({ e, of, url, search }: { e: Explanation; of: number; url: string; search: Search }) {
  const good = fine.has(e.code)
  const send = `curl -v${search.method ? ` -X ${search.method}` : ''}${(search.header ?? []).map((h) => ` -H '${h.replace(/'/g, `'\\''`)}'`).join('')} '${url.replace(/'/g, '%27')}'`
  return (
    <Stack gap="md">
      <Paper className="verdict" data-level={good ? 'ok' : 'error'} role="status">
        <span className="verdict-mark"><Icon name={good ? 'check' : 'alert'} size={24} /></span>
        <div className="grow">
          <Text fz={18} fw={650}>{e.status ? `${e.status}: ` : ''}{e.message}</Text>
          <Text size="sm" c="dimmed">
            <span className="mono">{e.code}</span>
            {of > 1 || e.envoys.length > 0 ? `, as ${e.envoys.join(', ')} ${e.envoys.length === 1 ? 'has' : 'have'} it` : ', as Envoys should have it: none is connected'}
          </Text>
          {e.refused_by?.map((o) => <div key={o}><To path={o} /></div>)}
          {e.location && <Text size="sm">to <span className="mono">{e.location}</span></Text>}
        </div>
        <CopyCurl line={send} small />
      </Paper>
      <div className="two">
        <Section title="The decision, step by step">
          <ol className="steps">
            {e.steps.map((s, i) => <li key={i}><Badge color="gray" size="sm">{s.code}</Badge><Text size="sm" className="wrap">{s.message}</Text></li>)}
          </ol>
        </Section>
        <Section title="Routes, in the order in which they are tried">
          <Stack gap="xs">
            {e.routes.length === 0 && <Text size="sm" c="dimmed">None was tried.</Text>}
            {e.routes.map((r, i) => <RouteCheck key={i} service={e.service ?? ''} route={r} />)}
            {e.later_routes && (
              <Accordion variant="separated" className="cards">
                <Accordion.Item value="later">
                  <Accordion.Control>{e.later_routes.length + (e.more_routes ?? 0)} later routes are not tried</Accordion.Control>
                  <Accordion.Panel><Stack gap="xs">{e.later_routes.map((r, i) => <RouteCheck key={i} service={e.service ?? ''} route={r} />)}</Stack></Accordion.Panel>
                </Accordion.Item>
              </Accordion>
            )}
          </Stack>
        </Section>
      </div>
      {e.forward && <Forward forward={e.forward} />}
      <Section title="Filters that the request passes">
        <div className="table-wrap">
          <Table>
            <Table.Tbody>
              {e.filters.map((f, i) => (
                <Table.Tr key={i}>
                  <Table.Td w="35%" className="mono">{f.name.replace(/^envoy\.filters\.http\./, '')}</Table.Td>
                  <Table.Td className="wrap">
                    {f.message}
                    {f.descriptors?.map((d, j) => <Text key={j} size="xs" c="dimmed">{d.entries.map((x) => `${x.key}=${x.value}`).join(', ')}: {d.message}</Text>)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      </Section>
      {e.hosts.length > 1 && (
        <Section title="Services whose host matches">
          {e.hosts.map((h) => <Text size="sm" key={h.service + h.domain}><To path={`/service/${h.service}`}>{h.service}</To> <span className="mono">{h.domain}</span> {h.message}</Text>)}
        </Section>
      )}
      {e.tls && (
        <Section title="TLS">
          {e.tls.certificates.map((c) => <Text size="sm" key={c.fingerprint}><To path={`/secret/${c.secret}`}>{c.secret}</To> {c.message}</Text>)}
          {e.tls.certificates.length === 0 && <Text size="sm">No certificate: the handshake fails.</Text>}
        </Section>
      )}
      {e.unknown_filters && <Alert color="yellow" icon={<Icon name="alert" />}>Filters that are not known here may change the answer: {e.unknown_filters.join(', ')}</Alert>}
    </Stack>
  )
}

function RouteCheck({ service, route }: { service: string; route: Explanation['routes'][number] }) {
  // Some routes are the gateway's own, such as the one that redirects to HTTPS.
  const { data } = useQuery({ ...listQuery(`/service/${service}/route`), enabled: service !== '' })
  const stored = data?.rows.some((r) => r.route_name === route.route)
  return (
    <div className="check" data-holds={route.matches}>
      <Group gap="xs"><Text span c={route.matches ? 'teal.8' : 'dimmed'} className="condition" data-level={route.matches ? 'ok' : 'info'}><Icon name={route.matches ? 'check' : 'close'} size={16} /></Text>{stored ? <To path={`/service/${service}/route/${route.route}`}>{route.route}</To> : <span className="mono">{route.route}</span>}</Group>
      {route.checks.map((c, i) => <Text key={i} size="sm" c={c.holds ? undefined : 'dimmed'} className="wrap" pl={24}>{c.holds ? '' : 'no: '}{c.message}</Text>)}
    </div>
  )
}

const healthColor: Record<string, string> = { healthy: 'teal', answering: 'teal', unhealthy: 'red', failing: 'red', ejected: 'red', unresolved: 'red', checking: 'blue' }

function Forward({ forward: f }: { forward: NonNullable<Explanation['forward']> }) {
  return (
    <Section title="Where it goes" aside={<Text size="sm" c="dimmed">limit {f.timeout}{f.retries ? `, ${f.retries.attempts} retries on ${f.retries.on}` : ''}</Text>}>
      <Text size="sm" mb="xs">as <span className="mono">{f.host}{f.path}</span></Text>
      <div className="table-wrap">
        <Table>
          <Table.Thead><Table.Tr><Table.Th>Upstream</Table.Th><Table.Th>Address</Table.Th><Table.Th>Share</Table.Th><Table.Th>Health</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>
            {f.clusters.flatMap((c) =>
              c.endpoints.map((e) => (
                <Table.Tr key={c.name + e.address + e.port}>
                  <Table.Td>{e.upstream ? <To path={`/upstream/${e.upstream}`}>{e.upstream}</To> : c.name}</Table.Td>
                  <Table.Td className="mono">{e.address}{e.port ? `:${e.port}` : ''}</Table.Td>
                  <Table.Td className="time">{Math.round(e.percent * 10) / 10} %</Table.Td>
                  <Table.Td>{e.health && <Badge color={healthColor[e.health] ?? 'gray'}>{e.health}</Badge>} <Text span size="xs" c="dimmed">{e.health_message}</Text></Table.Td>
                </Table.Tr>
              )),
            )}
          </Table.Tbody>
        </Table>
      </div>
    </Section>
  )
}
