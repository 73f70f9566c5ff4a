import { Badge, Group, Text } from '@mantine/core'
import type { Change } from '../api/state'
import { To } from './bits'

const color = { create: 'teal', update: 'blue', delete: 'red' }
const word = { create: 'new', update: 'changed', delete: 'deleted' }

const textOf = (v: unknown) => (v === undefined ? '' : typeof v === 'string' ? v : JSON.stringify(v, null, 2))

// lineDiff compares texts line by line (longest common subsequence); long ones are shown whole.
export function lineDiff(before: string, after: string): { mark: ' ' | '-' | '+'; line: string }[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  if (a.length * b.length > 250_000) return [...a.map((line) => ({ mark: '-' as const, line })), ...b.map((line) => ({ mark: '+' as const, line }))]
  const length = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1])
  const out: { mark: ' ' | '-' | '+'; line: string }[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ mark: ' ', line: a[i++] })
      j++
    } else if (i < a.length && (j >= b.length || length[i + 1][j] >= length[i][j + 1])) out.push({ mark: '-', line: a[i++] })
    else out.push({ mark: '+', line: b[j++] })
  }
  return out
}

export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  return (
    <pre className="diff" tabIndex={0} aria-label={label}>
      {lineDiff(before, after).map((l, i) => <span key={`${i}${l.line}`} className="diff-line" data-mark={l.mark}>{`${l.mark} ${l.line}\n`}</span>)}
    </pre>
  )
}

const isLink = (c: Change) => c.fields.length === 0 || c.kind.includes('_')

// ChangeList is what a write changes, readable.
export function ChangeList({ changes }: { changes: Change[] }) {
  if (changes.length === 0) return <Text size="sm" c="dimmed">Nothing changes.</Text>
  return (
    <div className="changes">
      {changes.map((c) => (
        <div key={c.path + c.action} className="change">
          <Group gap="xs">
            <Badge color={color[c.action]}>{isLink(c) ? { create: 'attached', update: 'changed', delete: 'detached' }[c.action] : word[c.action]}</Badge>
            <To path={c.path} />
          </Group>
          {!isLink(c) && <Fields change={c} />}
        </div>
      ))}
    </div>
  )
}

function Fields({ change }: { change: Change }) {
  const shown = change.fields.filter((f) => !f.default)
  const rest = change.fields.length - shown.length
  return (
    <div className="fields">
      {shown.map((f) => {
        const before = textOf(f.before)
        const after = textOf(f.after)
        const long = before.includes('\n') || after.includes('\n') || before.length + after.length > 90
        return (
          <div key={f.field} className="field-change">
            <span className="field-name">{f.field}</span>
            {long ? (
              <Diff before={before} after={after} label={`Change of ${f.field}`} />
            ) : (
              <span className="mono">
                {before !== '' && <del>{before}</del>}
                {before !== '' && after !== '' && ' -> '}
                {after !== '' ? <ins>{after}</ins> : change.action === 'update' && <ins>(empty)</ins>}
              </span>
            )}
          </div>
        )
      })}
      {rest > 0 && <Text size="xs" c="dimmed">{rest} {rest === 1 ? 'field has its' : 'fields have their'} default</Text>}
    </div>
  )
}
