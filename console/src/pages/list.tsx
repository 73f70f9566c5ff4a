import { Button, Group, Select, SegmentedControl, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useCallback, useDeferredValue, useMemo } from 'react'
import { capital, type Kind, nameOf, pathOfRow, type Place, type Row } from '../api/kinds'
import { listQuery, type ObjectStatus } from '../api/state'
import { Empty, Failure, Page, Tags, Time, To, Waiting } from '../parts/bits'
import { Icon } from '../parts/icon'
import { useSearchText } from '../parts/searchtext'
import { type Column, DataTable } from '../parts/table'
import { StatusBadge, summaryOf } from '../parts/status'
import { useMay } from '../session'

// main are the fields that a list shows first. Of a kind that is not named, it shows the first ones.
const main: Record<string, string[]> = {
  service: ['fqdn', 'mode', 'https'],
  upstream: ['upstream_ip', 'upstream_port', 'upstream_protocol', 'upstream_weight'],
  secret: ['secret_type', 'host_names', 'not_after'],
  proxy: ['listen_ip', 'http_port', 'https_port'],
  token: ['role', 'last_used_ts'],
  key: ['key_description', 'last_used_ts'],
}

const hidden = /(_id|_ts|_config|^config|_hash|^status|^tags)$/

export function columnsOf(kind: Kind): string[] {
  if (main[kind.word]) return main[kind.word]
  const names = Object.entries(kind.read?.properties ?? {})
  return names.filter(([n, s]) => !hidden.test(n) && n !== `${kind.owner}_name` && n !== `${kind.word}_name` && n !== 'name' && s.type !== 'object').map(([n]) => n).slice(0, 3)
}

// labelOf is a field in words: upstream_hc_path of an upstream is "Hc path".
export const labelOf = (kind: Kind, field: string) => {
  const text = field.toLowerCase().replace(new RegExp(`^${kind.word}_`), '').replace(/_ts$/, '').replace(/_/g, ' ')
  return capital(text).replace(/^(Http|Ip|Fqdn|Https|Tls|Sni|Dns|Hc)\b/, (w) => w.toUpperCase()).replace('HC', 'Health check').replace(/(.)seconds$/, '$1 (seconds)').replace(/(.)percent$/, '$1 (%)')
}

export function Value({ value, field }: { value: unknown; field: string }): ReactNode {
  if (value === null || value === undefined || value === '') return <Text span c="dimmed" inherit>-</Text>
  if (/_(ts|after)$/.test(field) || field === 'not_after') return <Time at={String(value)} />
  if (Array.isArray(value)) return value.length ? value.map(String).join(', ') : <Text span c="dimmed" inherit>-</Text>
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'object') return <span className="mono">{JSON.stringify(value)}</span>
  return <span className={typeof value === 'string' && /[.:/*]/.test(value) ? 'mono' : undefined}>{String(value)}</span>
}

export function tableOf(kind: Kind, names: Record<string, string>): Column<Row>[] {
  const columns: Column<Row>[] = [{ title: 'Name', cell: (r) => <To path={pathOfRow(kind, r, names)}>{nameOf(kind, r)}</To> }]
  for (const field of columnsOf(kind)) columns.push({ title: labelOf(kind, field), cell: (r) => <Value value={r[field]} field={field} /> })
  if (kind.read?.properties?.tags) columns.push({ title: 'Tags', cell: (r) => <Tags tags={r.tags} /> })
  if (kind.read?.properties?.status) columns.push({ title: 'Status', cell: (r) => <StatusBadge status={r.status as ObjectStatus} />, width: 150 })
  const at = kind.read?.properties?.update_ts ? 'update_ts' : 'create_ts'
  columns.push({ title: at === 'update_ts' ? 'Changed' : 'Created', cell: (r) => <Time at={r[at] as string} />, width: 140 })
  return columns
}

export interface ListSearch {
  q?: string
  tag?: string
  state?: 'not-live'
}

const none: Row[] = []

const textOf = (row: Row) => {
  const { status: _, ...rest } = row
  return JSON.stringify(rest).toLowerCase()
}

export function useFiltered(rows: Row[], text: string, search: ListSearch): Row[] {
  const q = useDeferredValue(text).toLowerCase().trim()
  const texts = useMemo(() => rows.map(textOf), [rows])
  return useMemo(() => {
    const words = q.split(/\s+/).filter(Boolean)
    return rows.filter((r, i) => {
      if (search.tag && !(r.tags as string[] | undefined)?.includes(search.tag)) return false
      if (search.state && summaryOf(r.status as ObjectStatus)?.level === 'ok') return false
      return words.every((w) => texts[i].includes(w))
    })
  }, [rows, texts, q, search.tag, search.state])
}

// Filters are the search of a list, which is a part of its address.
export function Filters({ rows, text, setText, search, status }: { rows: Row[]; text: string; setText: (text: string) => void; search: ListSearch; status: boolean }) {
  const navigate = useNavigate()
  const set = (change: ListSearch) => void navigate({ to: '.', search: (old: ListSearch) => ({ ...old, ...change }), replace: true } as never)
  const tags = useMemo(() => [...new Set(rows.flatMap((r) => (r.tags as string[] | undefined) ?? []))].sort(), [rows])
  return (
    <Group gap="sm">
      <TextInput aria-label="Search" placeholder="Search" leftSection={<Icon name="explain" size={15} />} w={260} maw="100%" value={text} onChange={(e) => setText(e.currentTarget.value)} data-search />
      {tags.length > 0 && <Select aria-label="Tag" placeholder="All tags" data={tags} value={search.tag ?? null} onChange={(v) => set({ tag: v ?? undefined })} clearable searchable w={170} />}
      {status && <SegmentedControl aria-label="Status" size="sm" data={[{ value: 'all', label: 'All' }, { value: 'not-live', label: 'Not live' }]} value={search.state ?? 'all'} onChange={(v) => set({ state: v === 'all' ? undefined : 'not-live' })} />}
    </Group>
  )
}

export function ListPage({ place }: { place: Place }) {
  const { kind, path, names } = place
  const search = useSearch({ strict: false }) as ListSearch
  const may = useMay()
  const status = Boolean(kind.read?.properties?.status)
  const { data, error, refetch } = useQuery(listQuery(path, status ? { status: true } : {}))
  const [text, setText] = useSearchText()
  const rows = useFiltered(data?.rows ?? none, text, search)
  const columns = useMemo(() => tableOf(kind, names), [kind, names])
  const rowKey = useCallback((r: Row) => nameOf(kind, r), [kind])
  const title = capital(kind.plural)
  const add = kind.create && (kind.word === 'token' ? may.admin : may.write) && (
    <Button component={Link} to={`/new${path}`} leftSection={<Icon name="plus" size={16} />}>New {kind.noun}</Button>
  )
  return (
    <Page title={title} icon={kind.word} lead={kind.description} aside={add}>
      {error && !data ? <Failure error={error} retry={() => void refetch()} /> : null}
      {!data && !error ? <Waiting rows={6} /> : null}
      {data?.rows.length === 0 && <Empty icon={kind.word} title={`There are no ${kind.plural}`} action={add}>{kind.description}</Empty>}
      {data && data.rows.length > 0 && (
        <>
          <Group justify="space-between">
            <Filters rows={data.rows} text={text} setText={setText} search={search} status={status} />
            <Text size="sm" c="dimmed" role="status">{rows.length === data.rows.length ? rows.length : `${rows.length} of ${data.rows.length}`}{data.more ? ', and more' : ''}</Text>
          </Group>
          {rows.length === 0 ? <Empty icon="explain" title={`No ${kind.noun} matches`}>Remove a part of the search.</Empty> : <DataTable rows={rows} columns={columns} rowKey={rowKey} label={title} />}
        </>
      )}
    </Page>
  )
}
