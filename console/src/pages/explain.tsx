import { Accordion, Alert, Badge, Group, Paper, SegmentedControl, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, call, rowsOf, type Schemas, typed } from '../api/client'
import { listQuery } from '../api/state'
import { Empty, Failure, Page, Section, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Comparison, DraftEditor } from '../parts/draft'
import { Icon } from '../parts/icon'
import { NoProxy, RequestForm, type RequestSearch, useAsked } from '../parts/request'
import { useMay } from '../session'

type Explanation = Schemas['Explanation']

const yaml = 'application/yaml'

export function ExplainPage() {
  const asked = useAsked()
  const { search, proxy, query, ready } = asked
  const curl = useCurl()
  const may = useMay()
  const [draft, setDraft] = useState('')
  const [view, setView] = useState('draft')
  const now = useQuery({
    queryKey: ['live', 'explain', proxy, query],
    enabled: ready,
    queryFn: async ({ signal }) => rowsOf<Explanation>(typed(await api.GET('/proxy/{proxy}/explain', { params: { path: { proxy }, query }, signal }))),
  })
  const then = useQuery({
    queryKey: ['stored', 'draft', proxy, query, draft],
    enabled: ready && draft !== '',
    queryFn: async ({ signal }) => rowsOf<Explanation>((await call<{ data: Record<string, unknown> }>('POST', `/proxy/${proxy}/explain`, { query, body: draft, headers: { 'Content-Type': yaml }, signal })).body),
  })
  const tried = draft === '' ? undefined : then.data?.[0]
  const shown = tried && view === 'draft' ? [tried] : now.data
  const other = tried && (view === 'draft' ? now.data : [tried])
  const line = draft === '' ? curl('GET', `/proxy/${proxy}/explain`, { query }) : curl('POST', `/proxy/${proxy}/explain`, { query, type: yaml, file: 'draft.yaml' })
  return (
    <Page title="Explain" icon="explain" lead="What the Envoys do with a request, and why. Nothing is sent." aside={ready && <CopyCurl line={line} />}>
      <RequestForm asked={asked} to="/explain" verb="Explain" busy={now.isFetching} />
      {asked.none && <NoProxy />}
      {!search.url && asked.names.length > 0 && <Empty icon="explain" title="Which request?">Type a URL as a client would use it, or paste the curl line of a colleague.</Empty>}
      {now.error && <Failure error={now.error} retry={() => void now.refetch()} />}
      {ready && now.isFetching && !now.data && <Waiting rows={6} />}
      {ready && may.write && <DraftEditor service={now.data?.[0]?.service ?? ''} busy={then.isFetching} error={draft === '' ? undefined : then.error} explain={(text) => { setView('draft'); if (text === draft) void then.refetch(); else setDraft(text) }} forget={() => setDraft('')} />}
      {tried && now.data && (
        <>
          <Comparison now={now.data} draft={tried} />
          <Group><SegmentedControl aria-label="Shown" data={[{ value: 'draft', label: 'With the draft' }, { value: 'now', label: 'Now' }]} value={view} onChange={setView} /></Group>
        </>
      )}
      {shown?.map((e, i) => <Answer key={i} e={e} of={shown.length} url={search.url ?? ''} search={search} other={other} />)}
    </Page>
  )
}

const fine = new Set(['forwarded', 'direct_response', 'redirected', 'passed_on', 'preflight', 'login_callback', 'signed_out'])

// markOf says that the other explanations have no such step or filter.
const markOf = (other: Explanation[] | undefined, basis: string, has: (e: Explanation) => boolean) => (other && !other.some(has) ? (basis === 'draft' ? '+' : '-') : undefined)

function Answer({ e, of, url, search, other }: { e: Explanation; of: number; url: string; search: RequestSearch; other?: Explanation[] }) {
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
            {e.basis === 'draft' ? ', as Envoys should have it with the draft' : of > 1 || e.envoys.length > 0 ? `, as ${e.envoys.join(', ')} ${e.envoys.length === 1 ? 'has' : 'have'} it` : ', as Envoys should have it: none is connected'}
          </Text>
          {e.refused_by?.map((o) => <div key={o}><To path={o} /></div>)}
          {e.location && <Text size="sm">to <span className="mono">{e.location}</span></Text>}
        </div>
        {e.basis !== 'draft' && <CopyCurl line={send} small />}
      </Paper>
      <div className="two">
        <Section title="The decision, step by step">
          <ol className="steps">
            {e.steps.map((s, i) => <li key={i} data-mark={markOf(other, e.basis, (o) => o.steps.some((t) => t.code === s.code && t.message === s.message))}><Badge color="gray" size="sm">{s.code}</Badge><Text size="sm" className="wrap">{s.message}</Text></li>)}
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
                <Table.Tr key={i} data-mark={markOf(other, e.basis, (o) => o.filters.some((g) => g.name === f.name && g.message === f.message))}>
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
          {e.tls.certificates.map((c) => (
            <Text size="sm" key={c.fingerprint}>
              {c.host ? `${c.source} certificate for ${c.host}` : <To path={`/secret/${c.secret}`}>{c.secret}</To>} {c.message}, {c.days_left} days left
              {c.error && <Text span size="sm" c="red">; {c.error}{c.advice && `: ${c.advice}`}</Text>}
            </Text>
          ))}
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
