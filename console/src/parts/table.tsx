// A table that stays fast with thousands of rows: only those in view are in the page.
import { Table } from '@mantine/core'
import { memo, type ReactNode, useEffect, useRef, useState } from 'react'

export interface Column<R> {
  title: string
  cell: (row: R) => ReactNode
  width?: number | string
}

const height = 37
const around = 6

// TableRow is drawn again only if its row or the columns are others.
const TableRow = memo(function TableRow({ row, columns }: { row: unknown; columns: Column<never>[] }) {
  return <Table.Tr>{columns.map((c) => <Table.Td key={c.title}>{c.cell(row as never)}</Table.Td>)}</Table.Tr>
})

function Rows<R>({ rows, columns, rowKey, label }: { rows: R[]; columns: Column<R>[]; rowKey: (row: R) => string; label: string }) {
  const box = useRef<HTMLDivElement>(null)
  const [from, setFrom] = useState(0)
  const virtual = rows.length > 150
  const shown = Math.ceil(innerHeight / height) + 2 * around
  useEffect(() => {
    const see = () => {
      if (!virtual || !box.current) return
      const top = -box.current.getBoundingClientRect().top
      setFrom(Math.max(0, Math.floor(top / height / around) * around - around))
    }
    see()
    addEventListener('scroll', see, { passive: true })
    return () => removeEventListener('scroll', see)
  }, [virtual])
  const start = virtual ? Math.min(from, Math.max(0, rows.length - shown)) : 0
  const part = virtual ? rows.slice(start, start + shown) : rows
  const gap = (n: number) => n > 0 && <tr aria-hidden="true"><td colSpan={columns.length} className="gap" height={n * height} /></tr>
  return (
    <div className="table-wrap" ref={box}>
      <Table highlightOnHover aria-label={label} aria-rowcount={rows.length + 1} className={virtual ? 'rows' : undefined}>
        <Table.Thead><Table.Tr>{columns.map((c) => <Table.Th key={c.title} w={c.width}>{c.title}</Table.Th>)}</Table.Tr></Table.Thead>
        <Table.Tbody>
          {gap(start)}
          {part.map((row) => <TableRow key={rowKey(row)} row={row} columns={columns as Column<never>[]} />)}
          {gap(rows.length - start - part.length)}
        </Table.Tbody>
      </Table>
    </div>
  )
}

// DataTable is drawn again only if it gets something else: columns and rowKey should stay the same.
export const DataTable = memo(Rows) as typeof Rows
