import { Badge, Button, Group, MultiSelect, Table, Text, TextInput } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { clearFeed, type Event, useFeed } from '../api/events'
import { Empty, Page, Time, To } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'

const kinds = ['change', 'publish', 'ack', 'nack', 'applied', 'connect', 'disconnect', 'overdue', 'certificate', 'provider', 'login', 'replica', 'reset']
const color: Record<string, string> = { nack: 'red', disconnect: 'yellow', overdue: 'yellow', certificate: 'yellow', login: 'yellow', reset: 'yellow', change: 'blue', applied: 'teal', connect: 'teal' }

interface Search {
  type?: string[]
  q?: string
}

export function EventsPage() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const feed = useFeed()
  const curl = useCurl()
  const [held, setHeld] = useState<Event[] | null>(null)
  const set = (change: Search) => void navigate({ to: '/events', search: { ...search, ...change }, replace: true } as never)
  const types = Array.isArray(search.type) ? search.type : []
  const q = (search.q ?? '').toLowerCase()
  const events = (held ?? feed.events).filter((e) => (types.length === 0 ? e.event !== 'ack' : types.includes(e.event)) && (!q || JSON.stringify(e).toLowerCase().includes(q)))
  return (
    <Page
      title="Events"
      icon="events"
      lead="What happens, while it happens: since this page was opened, the newest first."
      aside={
        <>
          <CopyCurl line={curl('GET', '/events').replace('-sS', '-sSN')} />
          <Button variant="default" leftSection={<Icon name={held ? 'play' : 'pause'} size={16} />} onClick={() => setHeld(held ? null : feed.events)}>{held ? 'Continue' : 'Pause'}</Button>
          <Button variant="default" onClick={() => { clearFeed(); setHeld(null) }}>Clear</Button>
        </>
      }
    >
      <Group gap="sm" align="flex-start">
        <MultiSelect aria-label="Events" placeholder={types.length ? undefined : 'All but acknowledgements'} data={kinds} value={types} onChange={(v) => set({ type: v.length ? v : undefined })} w={320} maw="100%" clearable />
        <TextInput aria-label="Search" placeholder="Search" value={search.q ?? ''} onChange={(e) => set({ q: e.currentTarget.value || undefined })} w={220} data-search />
      </Group>
      {events.length === 0 ? (
        <Empty icon="events" title="Nothing has happened yet">Change something, or connect an Envoy: it is here at once.</Empty>
      ) : (
        <div className="table-wrap">
          <Table aria-label="Events">
            <Table.Thead><Table.Tr><Table.Th w={110}>Event</Table.Th><Table.Th>What</Table.Th><Table.Th w={130}>When</Table.Th></Table.Tr></Table.Thead>
            <Table.Tbody>
              {events.slice(0, 200).map((e) => (
                <Table.Tr key={e.id + e.event}>
                  <Table.Td><Badge color={color[e.event] ?? 'gray'}>{e.event}</Badge></Table.Td>
                  <Table.Td><What event={e} /></Table.Td>
                  <Table.Td><Time at={e.at} /></Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </Page>
  )
}

function What({ event: e }: { event: Event }) {
  const parts: React.ReactNode[] = []
  if (e.revision !== undefined) parts.push(<span key="r">revision <To path={`/history/${e.revision}`}>{e.revision}</To></span>)
  if (e.request) parts.push(<span key="q" className="mono">{e.request}</span>)
  if (e.actor) parts.push(<span key="a">by {e.actor}</span>)
  if (e.proxy) parts.push(<span key="p">proxy <To path={`/proxy/${e.proxy}`}>{e.proxy}</To></span>)
  if (e.envoy) parts.push(<span key="e" className="mono">{e.envoy}</span>)
  if (e.type) parts.push(<span key="t">{e.type}</span>)
  if (e.object) parts.push(<To key="o" path={e.object} />)
  if (e.code) parts.push(<span key="c">{e.code}</span>)
  if (e.took_ms !== undefined) parts.push(<span key="m" className="time">{e.took_ms} ms</span>)
  if (e.replica) parts.push(<span key="l">{e.replica}</span>)
  return (
    <>
      <Group gap={10} className="wrap">{parts}</Group>
      {e.resources && <Text size="xs" c="dimmed" className="wrap mono">{e.resources.join(', ')}{e.more ? ` and ${e.more} more` : ''}</Text>}
      {e.message && <Text size="sm" className="wrap">{e.message}</Text>}
    </>
  )
}
