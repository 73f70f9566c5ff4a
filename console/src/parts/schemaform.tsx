// Forms of schemas of the OpenAPI document.
import { ActionIcon, Autocomplete, Button, Fieldset, FileButton, Group, NumberInput, Select, Stack, Switch, TagsInput, Text, Textarea, TextInput, MultiSelect } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { createContext, type DragEvent, useContext, useState } from 'react'
import { capital, type Document, nameOf, resolve, type Schema, useKinds } from '../api/kinds'
import { listQuery } from '../api/state'
import { kindNamed } from '../pages/object'
import { Icon } from './icon'

type Value = unknown
type Fields = Record<string, Value>

// Errors are messages by the place of a field, such as Filter_config.descriptors[0].method.
const Errors = createContext<Map<string, string>>(new Map())
export const ErrorsOf = Errors.Provider

interface Props {
  schema: Schema
  value: Value
  onChange: (v: Value) => void
  place: string
  label: string
  required?: boolean
  // locked is for a name that cannot change.
  locked?: boolean
}

export function SchemaField(p: Props) {
  const { document } = useKinds()
  const s = plain(document, resolve(document, p.schema))
  const error = useContext(Errors).get(p.place.toLowerCase())
  const common = { label: p.label, description: s.description, error, required: p.required, disabled: p.locked }
  if (s.anyOf || s.oneOf) return <Choice {...p} variants={(s.anyOf ?? s.oneOf ?? []).map((v) => resolve(document, v))} />
  if (s.enum) {
    // A type has a long and a short name: the long ones are enough to choose from, besides the one that the object has.
    const long = /^(http|route|vh)_filter_|^globalconfig_/
    const names = s.enum.map(String).filter((e) => e !== '')
    const data = names.some((e) => long.test(e)) ? names.filter((e) => long.test(e) || e === p.value) : names
    return <Select {...common} data={data} searchable={data.length > 8} clearable={!p.required} value={p.value === undefined || p.value === '' ? null : String(p.value)} onChange={(v) => p.onChange(v === null ? undefined : s.enum?.find((e) => String(e) === v))} placeholder={defaultIn(s)} />
  }
  switch (s.type) {
    case 'boolean':
      return <Switch label={p.label} description={s.description} error={error} checked={p.value === undefined ? defaultIn(s) === 'true' : Boolean(p.value)} onChange={(e) => p.onChange(e.currentTarget.checked)} />
    case 'integer':
    case 'number':
      return <NumberInput {...common} value={p.value === undefined || p.value === null ? '' : (p.value as number)} onChange={(v) => p.onChange(v === '' ? undefined : v)} min={s.minimum} max={s.maximum} clampBehavior="none" allowDecimal={s.type === 'number'} placeholder={defaultIn(s)} />
    case 'array':
      return <List {...p} schema={s} />
    case 'object':
      return s.properties ? <ObjectFields {...p} schema={s} /> : <MapFields {...p} schema={s} />
    default:
      return <TextField {...p} schema={s} />
  }
}

// plain replaces a choice between forms of the same value by the one that a form shows.
function plain(document: Document, s: Schema): Schema {
  const all = s.anyOf ?? s.oneOf
  if (!all) return s
  const variants = all.map((v) => resolve(document, v))
  const list = variants.find((v) => v.type === 'array')
  const text = variants.find((v) => v.type === 'string')
  const flag = variants.find((v) => v.type === 'boolean')
  const keep = (v: Schema) => ({ ...v, description: s.description ?? v.description })
  if (flag) return keep(flag)
  if (list && text && variants.length === 2) return keep(list)
  const objects = variants.filter((v) => v.type === 'object')
  if (objects.length === 1 && text && !text.enum && /JSON/.test(text.description ?? '')) return keep(objects[0])
  const rest = all.filter((_, i) => !(variants[i].type === 'string' && /JSON/.test(variants[i].description ?? '')))
  return rest.length === 1 ? resolve(document, rest[0]) : { ...s, anyOf: rest, oneOf: undefined }
}

export const defaultIn = (s: Schema): string => /Default: ([^.:]+?)(?:, |\. |\.$|$)/.exec(s.description ?? '')?.[1] ?? ''

const long = /(cert|key|value|script|body|page|html|text|json|source|pem)$/i

function TextField({ schema: s, value, onChange, place, label, required, locked }: Props) {
  const error = useContext(Errors).get(place.toLowerCase())
  const kind = kindNamed(s.description ?? '')
  const [over, setOver] = useState(false)
  const props = { label, description: s.description, error, required, disabled: locked, value: value === undefined || value === null ? '' : String(value) }
  if (kind) return <NameField {...props} kind={kind} onChange={onChange} />
  if ((/Secret_(cert|key|value)$/i.test(place) || (s.maxLength ?? 0) >= 1000) && (long.test(place) || (s.maxLength ?? 0) >= 1000)) {
    const take = (file: File | null) => void file?.text().then(onChange)
    return (
      <div className={over ? 'drop over' : 'drop'} onDragOver={(e: DragEvent) => { e.preventDefault(); setOver(true) }} onDragLeave={() => setOver(false)} onDrop={(e: DragEvent) => { e.preventDefault(); setOver(false); take(e.dataTransfer.files[0] ?? null) }}>
        <Textarea {...props} autosize minRows={2} maxRows={12} className="mono-input" placeholder="Type or paste it, or drop a file" onChange={(e) => onChange(e.currentTarget.value || undefined)} autoComplete="off" />
        <FileButton onChange={take}>{(b) => <Button {...b} size="compact-xs" variant="subtle" mt={4}>Read a file</Button>}</FileButton>
      </div>
    )
  }
  return <TextInput {...props} placeholder={defaultIn(s) || (typeof s.example === 'string' ? s.example : undefined)} onChange={(e) => onChange(e.currentTarget.value === '' ? undefined : e.currentTarget.value)} autoComplete="off" spellCheck={false} />
}

function NameField({ kind, onChange, ...props }: { kind: string; onChange: (v: Value) => void; label: string; description?: string; error?: string; required?: boolean; disabled?: boolean; value: string }) {
  const k = useKinds().by.get(kind)
  const { data } = useQuery({ ...listQuery(k?.list ?? `/${kind}`, { status: true }), enabled: k !== undefined })
  const names = k ? (data?.rows ?? []).map((r) => nameOf(k, r)) : []
  return <Autocomplete {...props} data={names} limit={50} onChange={(v) => onChange(v === '' ? undefined : v)} clearable />
}

function List({ schema: s, value, onChange, place, label, required }: Props) {
  const { document } = useKinds()
  const errors = useContext(Errors)
  const error = errors.get(place.toLowerCase()) ?? [...errors].find(([k]) => k.startsWith(`${place.toLowerCase()}[`))?.[1]
  const item = plain(document, resolve(document, s.items))
  const rows = Array.isArray(value) ? (value as Value[]) : []
  if (item.enum) return <MultiSelect label={label} description={s.description} error={error} required={required} data={item.enum.map(String)} value={rows.map(String)} onChange={(v) => onChange(v.length ? v : undefined)} searchable />
  if (item.type === 'string' || item.type === 'integer' || item.type === undefined)
    return <TagsInput label={label} description={s.description} error={error} required={required} value={rows.map(String)} onChange={(v) => onChange(v.length ? (item.type === 'integer' ? v.map((x) => (Number.isNaN(Number(x)) ? x : Number(x))) : v) : undefined)} placeholder="Type one, and press Enter" acceptValueOnBlur />
  const set = (i: number, v: Value) => onChange(rows.map((r, j) => (j === i ? v : r)))
  return (
    <Fieldset legend={label} variant="filled">
      <Stack gap="sm">
        {s.description && <Text size="xs" c="dimmed">{s.description}</Text>}
        {error && <Text size="xs" c="red">{error}</Text>}
        {rows.map((r, i) => (
          <div key={i} className="item">
            <SchemaField schema={s.items ?? {}} value={r} onChange={(v) => set(i, v ?? {})} place={`${place}[${i}]`} label={`${label} ${i + 1}`} />
            <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${label} ${i + 1}`} onClick={() => onChange(rows.length > 1 ? rows.filter((_, j) => j !== i) : undefined)}><Icon name="close" size={16} /></ActionIcon>
          </div>
        ))}
        <Group><Button size="compact-sm" variant="light" leftSection={<Icon name="plus" size={14} />} onClick={() => onChange([...rows, {}])}>Add one</Button></Group>
      </Stack>
    </Fieldset>
  )
}

function ObjectFields({ schema: s, value, onChange, place, label }: Props) {
  const fields = (value ?? {}) as Fields
  const required = new Set(s.required)
  const names = Object.keys(s.properties ?? {})
  const [open, setOpen] = useState<string[]>([])
  const few = names.length <= 6
  const shown = names.filter((n) => few || required.has(n) || fields[n] !== undefined || open.includes(n))
  const rest = names.filter((n) => !shown.includes(n))
  const error = useContext(Errors).get(place.toLowerCase())
  const set = (n: string, v: Value) => {
    const next = { ...fields, [n]: v }
    if (v === undefined) delete next[n]
    onChange(Object.keys(next).length > 0 ? next : undefined)
  }
  return (
    <Fieldset legend={label} variant="filled">
      <Stack gap="sm">
        {s.description && <Text size="xs" c="dimmed">{s.description}</Text>}
        {error && <Text size="xs" c="red" role="alert">{error}</Text>}
        {shown.map((n) => <SchemaField key={n} schema={s.properties?.[n] ?? {}} value={fields[n]} onChange={(v) => set(n, v)} place={`${place}.${n}`} label={capital(n.replace(/_/g, ' '))} required={required.has(n)} />)}
        {rest.length > 0 && <Select aria-label={`More of ${label}`} placeholder={`${rest.length} more ${rest.length === 1 ? 'key' : 'keys'}`} data={rest.map((n) => ({ value: n, label: capital(n.replace(/_/g, ' ')) }))} value={null} onChange={(v) => v && setOpen([...open, v])} searchable w={280} maw="100%" />}
      </Stack>
    </Fieldset>
  )
}

function MapFields({ schema: s, value, onChange, place, label }: Props) {
  const entries = Object.entries((value ?? {}) as Fields)
  const [key, setKey] = useState('')
  const values = typeof s.additionalProperties === 'object' ? s.additionalProperties : { type: 'string' }
  const error = useContext(Errors).get(place.toLowerCase())
  const put = (list: [string, Value][]) => onChange(list.length > 0 ? Object.fromEntries(list) : undefined)
  const add = () => {
    if (key && !entries.some(([k]) => k === key)) put([...entries, [key, undefined]])
    setKey('')
  }
  return (
    <Fieldset legend={label} variant="filled">
      <Stack gap="sm">
        {s.description && <Text size="xs" c="dimmed">{s.description}</Text>}
        {error && <Text size="xs" c="red">{error}</Text>}
        {entries.map(([k, v], i) => (
          <div key={k} className="item">
            <SchemaField schema={values} value={v} onChange={(n) => put(entries.map((e, j) => (j === i ? [k, n] : e)))} place={`${place}.${k}`} label={k} />
            <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${k}`} onClick={() => put(entries.filter((_, j) => j !== i))}><Icon name="close" size={16} /></ActionIcon>
          </div>
        ))}
        <Group gap="xs">
          <TextInput aria-label={`New key of ${label}`} placeholder="New key" value={key} onChange={(e) => setKey(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === 'Enter') { e.preventDefault(); add() } }} />
          <Button size="compact-sm" variant="light" onClick={add} disabled={!key}>Add</Button>
        </Group>
      </Stack>
    </Fieldset>
  )
}

// Choice is a value that has one of several forms.
function Choice({ variants, ...p }: Props & { variants: Schema[] }) {
  const fits = (s: Schema): boolean => {
    if (p.value === undefined) return false
    if (Array.isArray(p.value)) return s.type === 'array'
    if (typeof p.value === 'object') return s.type === 'object' && Object.keys(p.value as object).every((k) => s.properties?.[k] || s.additionalProperties)
    return s.type === typeof p.value
  }
  const found = variants.findIndex(fits)
  const [chosen, setChosen] = useState(Math.max(0, found))
  const nameOfVariant = (s: Schema, i: number) => (s.properties ? Object.keys(s.properties).slice(0, 3).join(', ') : (s.type ?? `form ${i + 1}`))
  return (
    <Stack gap="xs">
      <Select label={p.label} description="One of these forms" data={variants.map((v, i) => ({ value: String(i), label: nameOfVariant(v, i) }))} value={String(chosen)} onChange={(v) => { setChosen(Number(v)); p.onChange(undefined) }} allowDeselect={false} w={280} maw="100%" />
      <SchemaField {...p} schema={variants[chosen]} />
    </Stack>
  )
}
