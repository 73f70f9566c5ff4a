import { Badge, Button, Group, Select, Table, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api, rowsOf, typed } from '../api/client'
import { useKinds } from '../api/kinds'
import { type Change, type Revision, revisionsQuery } from '../api/state'
import { Empty, Failure, Page, Time, To, Waiting } from '../parts/bits'
import { ChangeList } from '../parts/changes'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'
import { type Write, WriteDialog } from '../parts/write'
import { useMay } from '../session'

export function RevisionTable({ rows }: { rows: Revision[] }) {
  return (
    <div className="table-wrap">
      <Table aria-label="Revisions">
        <Table.Thead><Table.Tr><Table.Th w={80}>Revision</Table.Th><Table.Th>What</Table.Th><Table.Th w={90}>Objects</Table.Th><Table.Th w={140}>Who</Table.Th><Table.Th w={140}>When</Table.Th></Table.Tr></Table.Thead>
        <Table.Tbody>
          {rows.map((r) => (
            <Table.Tr key={r.revision}>
              <Table.Td><To path={`/history/${r.revision}`}>{r.revision}</To></Table.Td>
              <Table.Td><span className="mono">{r.request}</span>{r.message && <Text size="sm" className="wrap">{r.message}</Text>}</Table.Td>
              <Table.Td className="time">{r.changes}</Table.Td>
              <Table.Td>{r.actor}</Table.Td>
              <Table.Td><Time at={r.at} /></Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

interface Search {
  by?: string
  kind?: string
  since?: string
  object?: string
  limit?: number
}

export function HistoryPage() {
  const search = useSearch({ strict: false }) as Search
  const navigate = useNavigate()
  const kinds = useKinds()
  const set = (change: Search) => void navigate({ to: '/history', search: { ...search, ...change }, replace: true } as never)
  const limit = search.limit ?? 50
  const { data, error, refetch } = useQuery({ ...revisionsQuery({ ...search, limit }), placeholderData: (old) => old })
  const words = kinds.all.filter((k) => k.word !== 'token').map((k) => ({ value: k.word, label: k.noun }))
  return (
    <Page title="History" icon="history" lead="Each stored write is a revision: who changed what, when and why.">
      <Group gap="sm">
        <TextInput aria-label="Who" placeholder="Who" w={140} value={search.by ?? ''} onChange={(e) => set({ by: e.currentTarget.value || undefined })} />
        <Select aria-label="Kind" placeholder="All kinds" w={160} data={words} value={search.kind ?? null} onChange={(v) => set({ kind: v ?? undefined })} clearable />
        <Select aria-label="Time" placeholder="All the time" w={160} data={[{ value: '1h', label: 'Last hour' }, { value: '24h', label: 'Last day' }, { value: '7d', label: 'Last week' }]} value={search.since ?? null} onChange={(v) => set({ since: v ?? undefined })} clearable />
        {search.object && <Badge variant="outline" color="gray" rightSection={<button type="button" className="plain" aria-label="Show all objects" onClick={() => set({ object: undefined })}><Icon name="close" size={12} /></button>}>{search.object}</Badge>}
      </Group>
      {error && !data ? <Failure error={error} retry={() => void refetch()} /> : null}
      {!data && !error && <Waiting rows={8} />}
      {data?.length === 0 && <Empty icon="history" title="No revision matches">{Object.keys(search).length > 0 ? 'Remove a part of the search.' : 'The first write makes the first revision.'}</Empty>}
      {data && data.length > 0 && <RevisionTable rows={data} />}
      {data && data.length >= limit && limit < 1000 && <Group justify="center"><Button variant="default" onClick={() => set({ limit: Math.min(1000, limit * 2) })}>Show more</Button></Group>}
    </Page>
  )
}

interface Detail extends Omit<Revision, 'changes'> {
  changes: Change[]
}

export function RevisionPage() {
  const { revision } = useParams({ strict: false }) as { revision: string }
  const may = useMay()
  const curl = useCurl()
  const [write, setWrite] = useState<Write | null>(null)
  const { data, error, refetch } = useQuery({
    queryKey: ['stored', 'revision', revision],
    queryFn: async ({ signal }) => rowsOf<Detail>(typed(await api.GET('/revision/{revision}', { params: { path: { revision: Number(revision) } }, signal })))[0],
  })
  const rollback = () => setWrite({ title: `Roll back to revision ${revision}`, verb: 'Roll back', method: 'POST', path: `/revision/${revision}/rollback`, danger: true })
  return (
    <Page
      title={`Revision ${revision}`}
      icon="history"
      lead={data && <>{data.actor}, <Time at={data.at} exact />: <span className="mono">{data.request}</span></>}
      aside={
        <>
          <CopyCurl line={curl('GET', `/revision/${revision}`)} />
          {may.write && <Button variant="default" onClick={rollback} leftSection={<Icon name="history" size={16} />}>Roll back to here</Button>}
        </>
      }
    >
      {error && !data ? <Failure error={error} retry={() => void refetch()} /> : null}
      {!data && !error && <Waiting rows={5} />}
      {data?.message && <Text>{data.message}</Text>}
      {data && <div className="panel"><ChangeList changes={data.changes} /></div>}
      <WriteDialog write={write} close={() => setWrite(null)} />
    </Page>
  )
}
