import { Badge, Button, Group, SegmentedControl, Text, TextInput, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, memo, Suspense, useCallback, useDeferredValue, useMemo, useState } from 'react'
import { graphOf, type Health, loose, page, type Shown, type View, viewOf } from '../api/map'
import { configQuery, listQuery, type ObjectStatus, useStatus } from '../api/state'
import { colorOf, levelOf } from '../api/verdict'
import { Empty, Failure, Page, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'
import { useSearchText } from '../parts/searchtext'
import { summaryOf } from '../parts/status'

const Flow = lazy(() => import('../parts/flow').then((m) => ({ default: m.Flow })))

interface Search {
  q?: string
  view?: 'list'
}

// healthOf says of each object whether it is live, and of an upstream whether it answers.
function useHealth(): Map<string, Health> {
  const status = useStatus()
  const upstreams = useQuery(listQuery('/upstream', { status: true }))
  return useMemo(() => {
    const health = new Map<string, Health>()
    for (const row of upstreams.data?.rows ?? []) {
      const s = row.status as ObjectStatus | undefined
      const answers = s?.conditions.find((c) => c.code === 'Answering' && c.status)
      const summary = answers ? { level: 'ok' as const, word: 'Answering', message: answers.message } : summaryOf(s)
      if (summary) health.set(`/upstream/${String(row.upstream_name)}`, summary)
    }
    for (const c of status.data?.conditions ?? []) {
      const level = levelOf(c.code)
      if (level !== 'info' && !health.has(c.path)) health.set(c.path, { level, word: c.code, message: c.message })
    }
    for (const u of status.data?.upstreams ?? []) if (u.object) health.set(u.object, { level: 'error', word: u.health, message: u.health_message })
    return health
  }, [upstreams.data, status.data])
}

export interface MapProps {
  view: View
  health: Map<string, Health>
  toggle: (id: string) => void
  grow: (id: string) => void
}

// MapPage shows which proxy, service and route lead to which upstream, as a graph, or as a list of the same.
export function MapPage() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const curl = useCurl()
  const config = useQuery(configQuery)
  const health = useHealth()
  const graph = useMemo(() => graphOf(config.data ?? {}), [config.data])
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const [sizes, setSizes] = useState<ReadonlyMap<string, number>>(new Map())
  const [text, setText] = useSearchText()
  const q = useDeferredValue(text)
  const open = useMemo(() => {
    // All is open if it is little; otherwise the proxies are. A search opens nothing else than what it finds.
    const first = [...graph.values()].filter((t) => q === '' && (t.column === 'proxy' || (t.column === 'service' && graph.size <= 60))).map((t) => t.id)
    const set = new Set(first)
    for (const id of toggled) if (!set.delete(id)) set.add(id)
    return set
  }, [graph, toggled, q])
  const view = useMemo(() => viewOf(graph, open, sizes, q), [graph, open, sizes, q])
  const set = (change: Search) => void navigate({ to: '/map', search: { ...search, ...change }, replace: true } as never)
  const toggle = useCallback((id: string) => setToggled((old) => { const next = new Set(old); if (!next.delete(id)) next.add(id); return next }), [])
  const grow = useCallback((id: string) => setSizes((old) => new Map(old).set(id, (old.get(id) ?? page) + 4 * page)), [])
  const props: MapProps = { view, health, toggle, grow }
  return (
    <Page title="Map" icon="map" lead="Which proxy, service and route lead to which upstream." aside={<CopyCurl line={curl('GET', '/config')} />}>
      {config.error && !config.data ? <Failure error={config.error} retry={() => void config.refetch()} /> : null}
      {config.isPending && <Waiting rows={6} />}
      {config.data && graph.size === 0 && <Empty icon="map" title="There is nothing to show">A proxy, a service or an upstream is the first place of the map.</Empty>}
      {graph.size > 0 && (
        <>
          <Group justify="space-between">
            <Group gap="sm">
              <TextInput aria-label="Search" placeholder="Search: a name, host, path or address" leftSection={<Icon name="explain" size={15} />} w={320} maw="100%" value={text} onChange={(e) => { setText(e.currentTarget.value); setToggled(new Set()) }} data-search />
              <SegmentedControl aria-label="View" size="sm" data={[{ value: 'map', label: 'Map' }, { value: 'list', label: 'List' }]} value={search.view ?? 'map'} onChange={(v) => set({ view: v === 'list' ? 'list' : undefined })} />
            </Group>
            <Text size="sm" c="dimmed" role="status">{q === '' ? `${graph.size} places` : `${view.matches} of ${graph.size} match${view.used < view.matches ? `, the first ${view.used} are shown` : ''}`}</Text>
          </Group>
          {q !== '' && view.matches === 0 && <Empty icon="explain" title="Nothing matches">Remove a part of the search.</Empty>}
          {view.shown.size > 0 && (search.view === 'list' ? <div className="panel"><List ids={view.roots} {...props} /></div> : <Suspense fallback={<Waiting rows={8} />}><Flow {...props} /></Suspense>)}
        </>
      )}
    </Page>
  )
}

export function HealthBadge({ health }: { health: Health | undefined }) {
  return health ? <Badge size="xs" color={colorOf[health.level]} title={health.message}>{health.word}</Badge> : null
}

// mayOpen reports whether a place has something to show or to hide.
export const mayOpen = (s: Shown) => (s.thing.column === 'proxy' || s.thing.column === 'service') && s.thing.children.length > 0

const List = memo(function List({ ids, ...p }: MapProps & { ids: string[] }) {
  return (
    <ul className="map-list">
      {ids.map((id) => {
        const s = p.view.shown.get(id)
        if (!s) return null
        const t = s.thing
        return (
          <li key={id}>
            <div className="map-line">
              {mayOpen(s) ? (
                <UnstyledButton className="map-toggle" aria-expanded={s.children.length > 0} aria-label={`${t.children.length} below ${t.label}`} onClick={() => p.toggle(id)}><Icon name="right" size={15} /></UnstyledButton>
              ) : <span className="map-toggle" />}
              <Icon name={t.column} size={15} />
              {t.links.length === 0 ? <span className="mono">{t.label}</span> : t.links.map((l) => <To key={l} path={l}>{l.slice(l.lastIndexOf('/') + 1)}</To>)}
              <Text span size="xs" c="dimmed" className="mono">{t.hint}</Text>
              <HealthBadge health={id === loose ? undefined : p.health.get(id)} />
            </div>
            {s.children.length > 0 && <List {...p} ids={s.children} />}
            {s.more > 0 && <Button size="compact-xs" variant="default" ml={30} onClick={() => p.grow(id)}>Show more of {s.more} others of {t.label}</Button>}
          </li>
        )
      })}
    </ul>
  )
})
