import { Alert, Badge, Group, Select, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useRef } from 'react'
import { api, rowsOf, type Schemas, typed } from '../api/client'
import { Empty, Failure, Page, Section, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'
import { NoProxy, RequestForm, useAsked } from '../parts/request'

type Counts = Schemas['RateLimitCounts']
type Limit = Counts['limits'][number]

// Counts have no events: they are asked for while the page is seen.
const every = 2000

const number = new Intl.NumberFormat('en')
const rateOf = (l: { unit?: string; requests_per_unit?: number | null }) => (l.unit ? `${number.format(l.requests_per_unit ?? 0)} each ${l.unit}` : 'not known')

export function LimitsPage() {
  const asked = useAsked()
  const { proxy } = asked
  const curl = useCurl()
  const navigate = useNavigate()
  const { data, error, refetch } = useQuery({
    queryKey: ['live', 'limits', proxy],
    enabled: proxy !== '',
    refetchInterval: every,
    queryFn: async ({ signal }) => ({ rows: rowsOf<Counts>(typed(await api.GET('/proxy/{proxy}/ratelimit', { params: { path: { proxy } }, signal }))), at: Date.now() }),
  })
  const speed = useSpeed(data)
  return (
    <Page title="Limits" icon="limits" lead="The rate limits of a proxy: what they have counted, and who is limited." aside={proxy && <CopyCurl line={curl('GET', `/proxy/${proxy}/ratelimit`)} />}>
      {asked.none && <NoProxy />}
      {asked.names.length > 1 && <Group><Select aria-label="Proxy of the limits" data={asked.names} value={proxy} onChange={(v) => void navigate({ to: '/limits', search: { ...asked.search, proxy: v ?? undefined } } as never)} allowDeselect={false} /></Group>}
      {error && !data ? <Failure error={error} retry={() => void refetch()} /> : null}
      {!data && !error && proxy && <Waiting rows={5} />}
      {data?.rows.length === 0 && <Empty icon="limits" title={`No limits apply to ${proxy}`}>A filter route_filter_ratelimit with a limit, or a globalconfig_ratelimit, has limits.</Empty>}
      {data?.rows.map((d) => <Domain key={d.globalconfig_name + d.domain} d={d} speed={speed} />)}
      {asked.names.length > 0 && <Test asked={asked} />}
    </Page>
  )
}

// useSpeed returns how many hits a limit had each second between the last two answers; undefined before there are two.
function useSpeed(data: { rows: Counts[]; at: number } | undefined) {
  const last = useRef<{ at: number; hits: Map<string, number>; speed: Map<string, number> }>(undefined)
  if (data && last.current?.at !== data.at) {
    const hits = new Map(data.rows.flatMap((d) => d.limits.map((l) => [keyOf(d, l), l.hits] as const)))
    const before = last.current
    const seconds = before ? (data.at - before.at) / 1000 : 0
    const speed = new Map([...hits].flatMap(([k, n]) => (before?.hits.has(k) && n >= (before.hits.get(k) ?? 0) && seconds > 0 ? [[k, (n - (before.hits.get(k) ?? 0)) / seconds] as const] : [])))
    last.current = { at: data.at, hits, speed }
  }
  return (d: Counts, l: Limit) => last.current?.speed.get(keyOf(d, l))
}

const keyOf = (d: Counts, l: Limit) => [d.globalconfig_name, d.domain, l.limit].join('\n')

function Domain({ d, speed }: { d: Counts; speed: (d: Counts, l: Limit) => number | undefined }) {
  const title = d.globalconfig_name ? `Domain ${d.domain}` : 'Limits that filters have themselves'
  const rates = new Map(d.limits.map((l) => [l.limit, l]))
  return (
    <Section title={title} aside={d.globalconfig_name ? <To path={`/globalconfig/${d.globalconfig_name}`}>{d.globalconfig_name}</To> : undefined}>
      <Stack gap="sm">
        {!d.counted && <Alert color="yellow" icon={<Icon name="alert" />} title="Its counts are not known">{d.note}</Alert>}
        {d.counted && d.note && <Text size="sm" c="dimmed">{d.note}</Text>}
        {d.engines?.filter((e) => e.error).map((e) => <Alert key={e.url} color="yellow" icon={<Icon name="alert" />} title={`An engine does not answer: ${e.url}`}>{e.error}</Alert>)}
        <div className="table-wrap">
          <Table aria-label={title}>
            <Table.Thead><Table.Tr><Table.Th>Limit</Table.Th><Table.Th>Rate</Table.Th><Table.Th>Window ends in</Table.Th><Table.Th>Routes</Table.Th><Table.Th>Hits</Table.Th><Table.Th>Each second</Table.Th><Table.Th>Near</Table.Th><Table.Th>Over</Table.Th><Table.Th>Let through</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>
              {d.limits.map((l) => <LimitRow key={l.limit} l={l} counted={d.counted} speed={speed(d, l)} />)}
              {d.limits.length === 0 && <Table.Tr><Table.Td colSpan={9}><Text size="sm" c="dimmed">No limit is known.</Text></Table.Td></Table.Tr>}
            </Table.Tbody>
          </Table>
        </div>
        <Limited d={d} rates={rates} />
      </Stack>
    </Section>
  )
}

function LimitRow({ l, counted, speed }: { l: Limit; counted: boolean; speed?: number }) {
  const n = (v: number) => (counted ? number.format(v) : 'unknown')
  return (
    <Table.Tr data-over={l.over > 0}>
      <Table.Td className="mono">{l.limit}{l.with?.map((w) => <Text key={w} size="xs" c="dimmed">with {w}</Text>)}</Table.Td>
      <Table.Td className="time">{rateOf(l)}</Table.Td>
      <Table.Td className="time">{l.resets_in ? `${l.resets_in} s` : '-'}</Table.Td>
      <Table.Td>
        {l.routes?.map((r) => <div key={r}><To path={pathOf(r)}>{r}</To></div>)}
        {l.more_routes ? <Text size="xs" c="dimmed">and {l.more_routes} more</Text> : null}
        {!l.routes?.length && <Text size="sm" c="dimmed">none</Text>}
      </Table.Td>
      <Table.Td className="time">{n(l.hits)}</Table.Td>
      <Table.Td className="time">{counted && speed !== undefined ? number.format(Math.round(speed * 10) / 10) : '-'}</Table.Td>
      <Table.Td className="time">{n(l.near)}</Table.Td>
      <Table.Td className="time">{counted && l.over > 0 ? <Badge color="red">{n(l.over)}</Badge> : n(l.over)}</Table.Td>
      <Table.Td className="time">{n(l.shadow)}</Table.Td>
    </Table.Tr>
  )
}

// pathOf is the path of shop/root, or of shop/* for a whole service.
function pathOf(place: string): string {
  const [service, route] = place.split('/')
  return route === '*' || !route ? `/service/${service}` : `/service/${service}/route/${route}`
}

function Limited({ d, rates }: { d: Counts; rates: Map<string, Limit> }) {
  if (!d.counted) return null
  if (!d.top) return <Text size="sm" c="dimmed">Who is limited is unknown: the engine that counts does not say it.</Text>
  if (d.top.length === 0) return <Text size="sm" c="dimmed">Nobody was limited in the last five minutes.</Text>
  return (
    <div className="table-wrap">
      <Table aria-label="Who is limited">
        <Table.Thead><Table.Tr><Table.Th>Who was limited in the last five minutes</Table.Th><Table.Th>By</Table.Th><Table.Th>Rate</Table.Th><Table.Th>Over</Table.Th></Table.Tr></Table.Thead>
        <Table.Tbody>
          {d.top.map((t) => (
            <Table.Tr key={t.limit + t.value}>
              <Table.Td className="mono">{t.value}</Table.Td>
              <Table.Td className="mono">{t.limit}</Table.Td>
              <Table.Td className="time">{rateOf(rates.get(t.limit) ?? {})}</Table.Td>
              <Table.Td className="time">{t.error > 0 ? `${number.format(t.over - t.error)} to ` : ''}{number.format(t.over)}{t.shadow ? ', let through' : ''}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

function Test({ asked }: { asked: ReturnType<typeof useAsked> }) {
  const { proxy, query, ready } = asked
  const curl = useCurl()
  const { data, error, isFetching } = useQuery({
    queryKey: ['live', 'limits test', proxy, query],
    enabled: ready,
    queryFn: async ({ signal }) => rowsOf<Schemas['RateLimitsTested']['data']['core_db_ratelimit_test'][number]>(typed(await api.GET('/proxy/{proxy}/ratelimit/test', { params: { path: { proxy }, query }, signal }))),
  })
  return (
    <Section title="Which limits would a request meet?" aside={ready && <CopyCurl line={curl('GET', `/proxy/${proxy}/ratelimit/test`, { query })} small />}>
      <Stack gap="sm">
        <RequestForm asked={asked} to="/limits" verb="Try" busy={isFetching} label="A request that is not sent" />
        {error && <Failure error={error} />}
        {data?.map((t, i) => (
          <div key={i} role="status">
            <Text fw={600}>{t.message}</Text>
            <Text size="sm" c="dimmed" mb={6}>{t.basis === 'envoys' ? `as ${t.envoys.join(', ')} ${t.envoys.length === 1 ? 'has' : 'have'} it` : 'as Envoys should have it: none is connected'}. Nothing was sent or counted.</Text>
            {t.descriptors.length > 0 && (
              <div className="table-wrap">
                <Table aria-label="Descriptors">
                  <Table.Thead><Table.Tr><Table.Th>Descriptor</Table.Th><Table.Th>Domain</Table.Th><Table.Th>What it meets</Table.Th></Table.Tr></Table.Thead>
                  <Table.Tbody>
                    {t.descriptors.map((d, j) => (
                      <Table.Tr key={j}>
                        <Table.Td className="mono">{d.entries.map((x) => `${x.key}=${x.value}`).join(', ') || '-'}</Table.Td>
                        <Table.Td>{d.globalconfig_name ? <To path={`/globalconfig/${d.globalconfig_name}`}>{d.domain}</To> : d.domain}</Table.Td>
                        <Table.Td>{d.message}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </div>
            )}
          </div>
        ))}
      </Stack>
    </Section>
  )
}
