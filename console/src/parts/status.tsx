import { Badge, Group, Table, Text, Tooltip } from '@mantine/core'
import type { ObjectStatus } from '../api/state'
import { colorOf, type Level, levelOf } from '../api/verdict'
import { To } from './bits'
import { Icon } from './icon'

interface Summary {
  level: Level
  word: string
  message: string
}

const good = new Set(['Accepted', 'Programmed', 'Answering', 'CertificateServed'])
const rank: Level[] = ['error', 'warning', 'info', 'ok']

// summaryOf says in a word whether an object is live.
export function summaryOf(status: ObjectStatus | undefined): Summary | undefined {
  if (!status) return undefined
  const by = new Map(status.conditions.map((c) => [c.code, c]))
  const bad = status.conditions
    .filter((c) => c.status && !good.has(c.code))
    .map((c) => ({ level: levelOf(c.code), word: c.code, message: c.message }))
    .sort((a, b) => rank.indexOf(a.level) - rank.indexOf(b.level))
  const programmed = by.get('Programmed')
  if (by.get('Accepted')?.status === false && bad.length === 0) return { level: 'error', word: 'Not accepted', message: by.get('Accepted')?.message ?? '' }
  if (bad.length > 0 && bad[0].level !== 'info') return bad[0]
  if (programmed?.status === false) return bad.find((b) => b.word === 'Unattached') ?? { level: 'warning', word: 'Not live', message: programmed.message }
  return bad[0] ?? { level: 'ok', word: 'Live', message: programmed?.message ?? 'every Envoy that it reaches has it' }
}

export function StatusBadge({ status }: { status: ObjectStatus | undefined }) {
  const s = summaryOf(status)
  if (!s) return null
  return <Tooltip label={s.message}><Badge color={s.word === 'Unattached' ? 'gray' : colorOf[s.level]} size="sm">{s.word}</Badge></Tooltip>
}

export function Conditions({ status }: { status: ObjectStatus }) {
  return (
    <div className="table-wrap">
      <Table>
        <Table.Tbody>
          {status.conditions.map((c) => {
            const fine = good.has(c.code) ? c.status : !c.status
            const level: Level = fine ? 'ok' : good.has(c.code) ? (c.code === 'Accepted' ? 'error' : 'warning') : levelOf(c.code)
            return (
              <Table.Tr key={c.code + (c.path ?? '') + c.message}>
                <Table.Td w={190}>
                  <Group gap={8} wrap="nowrap">
                    <Text span c={`${colorOf[level]}.8`} className="condition" data-level={level}><Icon name={fine ? 'check' : level === 'info' ? 'info' : 'alert'} size={16} /></Text>
                    <Text size="sm" fw={600}>{c.code}</Text>
                  </Group>
                </Table.Td>
                <Table.Td><Text size="sm" className="wrap">{c.message}</Text>{c.path && <To path={c.path} />}</Table.Td>
              </Table.Tr>
            )
          })}
          {status.lagging.map((l) => (
            <Table.Tr key={`${l.proxy}${l.envoy}${l.reason}`}>
              <Table.Td><Badge color={l.reason === 'refused' ? 'red' : 'yellow'}>{l.reason}</Badge></Table.Td>
              <Table.Td><Text size="sm" className="wrap">{[l.proxy && `proxy ${l.proxy}`, l.envoy && `Envoy ${l.envoy}`].filter(Boolean).join(', ')}: {l.message}</Text></Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}
