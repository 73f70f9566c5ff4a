import { Badge, Button, Paper, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type Envoy, listQuery, revisionsQuery, type Status, useStatus } from '../api/state'
import { colorOf, type Finding, findingsOf, type Level, worst } from '../api/verdict'
import { Empty, Failure, Page, Section, Time, To, Waiting } from '../parts/bits'
import { Icon } from '../parts/icon'
import { useMay } from '../session'

export function Overview() {
  const { data, error, refetch } = useStatus()
  if (!data) return <Page title="Overview" icon="overview">{error ? <Failure error={error} retry={() => void refetch()} /> : <Waiting rows={6} />}</Page>
  const findings = findingsOf(data)
  return (
    <Page title="Overview" icon="overview" lead="What runs, and what does not run as it is written.">
      <Verdict status={data} findings={findings} />
      {data.revision === 0 && <FirstSteps />}
      <Tiles status={data} findings={findings} />
      {findings.length > 0 && <NotLive findings={findings} />}
      <Envoys status={data} />
      <Certificates />
      <LastChanges />
    </Page>
  )
}

const count = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`

function Verdict({ status, findings }: { status: Status; findings: Finding[] }) {
  const envoys = status.proxies.flatMap((p) => p.envoys)
  const current = envoys.filter((e) => e.state === 'current').length
  const level = worst(findings)
  const serious = findings.filter((f) => f.level === 'error' || f.level === 'warning').length
  let title = 'Everything is live'
  let text = `${count(current, 'Envoy')} of ${envoys.length} ${envoys.length === 1 ? 'has' : 'have'} revision ${status.revision}.`
  let shown: Level | 'empty' = level === 'info' ? 'ok' : level
  if (status.proxies.length === 0) {
    shown = 'empty'
    title = 'Nothing is served yet'
    text = `No proxy exists, so no Envoy has anything to serve.${status.waiting_nodes.length > 0 ? ` ${count(status.waiting_nodes.length, 'Envoy')} waits for one.` : ''}`
  } else if (serious > 0) {
    title = `${count(serious, 'thing is', 'things are')} not as written`
    text += ' The rest of the configuration is not affected.'
  } else if (status.revision !== status.built_revision || current < envoys.length) {
    title = 'A change is on its way'
  }
  return (
    <Paper className="verdict" data-level={shown} role="status" aria-label="Verdict">
      <span className="verdict-mark"><Icon name={shown === 'ok' ? 'check' : shown === 'empty' ? 'info' : 'alert'} size={24} /></span>
      <div>
        <Text fz={20} fw={650} component="p" m={0}>{title}</Text>
        <Text c="dimmed" size="sm">{text}</Text>
      </div>
    </Paper>
  )
}

function FirstSteps() {
  const may = useMay()
  if (!may.write) return <Empty icon="play" title="Nothing is configured yet">Who may write begins with an upstream, a service and a proxy.</Empty>
  return (
    <Empty icon="play" title="From nothing to a request" action={<Button component={Link} to="/start">First steps</Button>}>
      A backend, a host name, and Envoy answers. It takes a minute, and shows each call.
    </Empty>
  )
}

function Tile({ name, value, hint }: { name: string; value: ReactNode; hint?: ReactNode }) {
  return (
    <div className="tile">
      <dt>{name}</dt>
      <dd>{value}{hint && <small>{hint}</small>}</dd>
    </div>
  )
}

function Tiles({ status, findings }: { status: Status; findings: Finding[] }) {
  const envoys = status.proxies.flatMap((p) => p.envoys)
  const failing = findings.filter((f) => f.code === 'Failing').length
  return (
    <dl className="tiles">
      <Tile name="Envoys" value={envoys.length} hint={`of ${count(status.proxies.length, 'proxy', 'proxies')}`} />
      <Tile name="Revision" value={status.revision} hint={status.built_revision === status.revision ? 'sent to Envoys' : `Envoys get ${status.built_revision}`} />
      <Tile name="Failing upstreams" value={failing + (status.more_upstreams ?? 0)} hint={failing === 0 ? 'none is known to fail' : 'see below'} />
      <Tile name="Rate limits" value={{ embedded: 'Here', none: 'Off' }[status.rate_limits ?? ''] ?? 'Engine'} hint={{ embedded: 'this process counts', none: 'no engine counts' }[status.rate_limits ?? ''] ?? status.rate_limits} />
      <Tile name="Control planes" value={1 + (status.replicas?.length ?? 0)} hint={status.replica} />
    </dl>
  )
}

export function FindingRow({ finding }: { finding: Finding }) {
  return (
    <Table.Tr>
      <Table.Td><Badge color={colorOf[finding.level]}>{finding.code}</Badge></Table.Td>
      <Table.Td>{finding.objects.length === 0 ? <Text c="dimmed" size="sm">-</Text> : finding.objects.map((o) => <div key={o}><To path={o} /></div>)}</Table.Td>
      <Table.Td>
        <Text size="sm" className="wrap">{finding.message}</Text>
        {finding.where && <Text size="xs" c="dimmed">{finding.where}</Text>}
      </Table.Td>
    </Table.Tr>
  )
}

function NotLive({ findings }: { findings: Finding[] }) {
  return (
    <Section title="Not live as written">
      <div className="table-wrap">
        <Table>
          <Table.Thead><Table.Tr><Table.Th w={190}>Condition</Table.Th><Table.Th w="30%">Object</Table.Th><Table.Th>Why</Table.Th></Table.Tr></Table.Thead>
          <Table.Tbody>{findings.slice(0, 100).map((f) => <FindingRow key={f.code + f.objects.join() + f.message} finding={f} />)}</Table.Tbody>
        </Table>
      </div>
    </Section>
  )
}

export const envoyColor: Record<Envoy['state'], string> = { current: 'teal', refused: 'red', waiting: 'blue', slow: 'yellow', unheard: 'gray' }

function Envoys({ status }: { status: Status }) {
  const rows = status.proxies.flatMap((p) => p.envoys.map((e) => ({ proxy: p.proxy, e })))
  return (
    <Section title="Envoys" aside={<To path="/envoys" mono={false}>All details</To>}>
      {rows.length === 0 ? (
        <Empty icon="envoys" title="No Envoy is connected">An Envoy that starts with the name of a proxy gets its configuration: <span className="mono">gatehouse envoy --proxy NAME</span></Empty>
      ) : (
        <div className="table-wrap">
          <Table>
            <Table.Thead><Table.Tr><Table.Th>Proxy</Table.Th><Table.Th>Envoy</Table.Th><Table.Th>Has revision</Table.Th><Table.Th>State</Table.Th><Table.Th>Connected</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>
              {rows.slice(0, 8).map(({ proxy, e }) => (
                <Table.Tr key={proxy + e.address}>
                  <Table.Td><To path={`/proxy/${proxy}`}>{proxy}</To></Table.Td>
                  <Table.Td><span className="mono">{e.instance || e.address}</span> <Text span c="dimmed" size="xs">{e.version}</Text></Table.Td>
                  <Table.Td className="time">{e.applied_revision || '-'}{e.applied_revision < status.revision && <Text span c="dimmed" size="xs"> of {status.revision}</Text>}</Table.Td>
                  <Table.Td><Badge color={envoyColor[e.state]}>{e.state}</Badge></Table.Td>
                  <Table.Td><Time at={e.connected_ts} /></Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </Section>
  )
}

function Certificates() {
  const { data } = useQuery(listQuery('/secret', { expires_before: '30d' }))
  if (!data || data.rows.length === 0) return null
  return (
    <Section title="Certificates that expire within 30 days">
      <div className="table-wrap">
        <Table>
          <Table.Tbody>
            {data.rows.map((r) => (
              <Table.Tr key={String(r.secret_name)}>
                <Table.Td><To path={`/secret/${String(r.secret_name)}`}>{String(r.secret_name)}</To></Table.Td>
                <Table.Td>{(r.host_names as string[] | undefined)?.join(', ')}</Table.Td>
                <Table.Td><Time at={r.not_after as string} /></Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </Section>
  )
}

function LastChanges() {
  const { data } = useQuery(revisionsQuery({ limit: 6 }))
  if (!data || data.length === 0) return null
  return (
    <Section title="Last changes" aside={<To path="/history" mono={false}>History</To>}>
      <Stack gap={0} className="table-wrap">
        <Table>
          <Table.Tbody>
            {data.map((r) => (
              <Table.Tr key={r.revision}>
                <Table.Td w={70}><To path={`/history/${r.revision}`}>{r.revision}</To></Table.Td>
                <Table.Td><span className="mono">{r.request}</span>{r.message && <Text size="xs" c="dimmed">{r.message}</Text>}</Table.Td>
                <Table.Td>{r.actor}</Table.Td>
                <Table.Td ta="right"><Time at={r.at} /></Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Stack>
    </Section>
  )
}
