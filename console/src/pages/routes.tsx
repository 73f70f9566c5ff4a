import { Badge, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Row } from '../api/kinds'
import { configQuery, type ObjectStatus, useStatus } from '../api/state'
import { Empty, Failure, Page, Tags, To, Waiting } from '../parts/bits'
import { StatusBadge } from '../parts/status'
import { useSearchText } from '../parts/searchtext'
import { type Column, DataTable } from '../parts/table'
import { Filters, type ListSearch, useFiltered } from './list'

const list = (v: unknown) => (Array.isArray(v) ? v.map(String) : [])
const matchOf = (r: Row) => (r.route_config as { match?: string } | undefined)?.match ?? 'prefix'
const rowKey = (r: Row) => String(r.path)

const columns: Column<Row>[] = [
  { title: 'Service', cell: (r) => <To path={`/service/${String(r.service)}`}>{String(r.service)}</To> },
  { title: 'Route', cell: (r) => <To path={String(r.path)}>{String(r.route_name)}</To> },
  { title: 'Host', cell: (r) => <span className="mono">{String(r.fqdn)}</span> },
  { title: 'Path', cell: (r) => <><span className="mono">{String(r.route_prefix)}</span> {matchOf(r) !== 'prefix' && <Badge size="xs" color="gray">{matchOf(r)}</Badge>}</> },
  { title: 'Upstreams', cell: (r) => list(r.upstreams).slice(0, 4).map((u, i) => <span key={u}>{i > 0 && ', '}<To path={`/upstream/${u}`}>{u}</To></span>) },
  { title: 'Filters', cell: (r) => list(r.filters).slice(0, 4).map((u, i) => <span key={u}>{i > 0 && ', '}<To path={`/filter/${u}`}>{u}</To></span>) },
  { title: 'Tags', cell: (r) => <Tags tags={r.tags} /> },
  { title: 'Status', cell: (r) => <StatusBadge status={r.status as ObjectStatus} /> },
]

// RoutesPage shows the routes of all services: the document has them all, and the status those that are not live.
export function RoutesPage() {
  const search = useSearch({ strict: false }) as ListSearch
  const config = useQuery(configQuery)
  const status = useStatus()
  const all = useMemo(() => {
    const bad = new Map<string, { code: string; message: string }>()
    for (const c of status.data?.conditions ?? []) bad.set(c.path, c)
    return (config.data?.services ?? []).flatMap((s) =>
      ((s.routes ?? []) as Row[]).map((r): Row => {
        const path = `/service/${String(s.service_name)}/route/${String(r.route_name)}`
        const c = bad.get(path) ?? bad.get(`/service/${String(s.service_name)}`)
        const conditions = [{ code: 'Programmed', status: true, message: 'it is a part of what Envoys have' }]
        return { ...r, path, service: s.service_name, fqdn: s.fqdn, status: { conditions: c ? [...conditions, { ...c, status: true }] : conditions, lagging: [] } }
      }),
    )
  }, [config.data, status.data])
  const [text, setText] = useSearchText()
  const rows = useFiltered(all, text, search)
  return (
    <Page title="Routes" icon="route" lead="The routes of all services. A route sends matching requests to its upstreams.">
      {config.error && !config.data ? <Failure error={config.error} retry={() => void config.refetch()} /> : null}
      {config.isPending && <Waiting rows={6} />}
      {config.data && all.length === 0 && <Empty icon="route" title="There are no routes">A route is a part of a service: open a service, and add one.</Empty>}
      {all.length > 0 && (
        <>
          <Group justify="space-between">
            <Filters rows={all} text={text} setText={setText} search={search} status />
            <Text size="sm" c="dimmed" role="status">{rows.length === all.length ? rows.length : `${rows.length} of ${all.length}`}</Text>
          </Group>
          <DataTable
            rows={rows}
            rowKey={rowKey}
            label="Routes"
            columns={columns}
          />
        </>
      )}
    </Page>
  )
}
