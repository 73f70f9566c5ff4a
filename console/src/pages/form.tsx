import { Accordion, Alert, Badge, Button, Group, Paper, SegmentedControl, Select, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useMemo, useState } from 'react'
import type { Problem } from '../api/client'
import { capital, type Kind, pathOf, type Place, resolve, type Schema, useKinds } from '../api/kinds'
import { objectQuery } from '../api/state'
import { Failure, Page, CodeBlock, To, Waiting } from '../parts/bits'
import { Icon } from '../parts/icon'
import { ErrorsOf, SchemaField } from '../parts/schemaform'
import { type Write, WriteDialog } from '../parts/write'
import { labelOf } from './list'

type Fields = Record<string, unknown>

// FormPage makes an object, or changes one.
export function FormPage({ place, edit }: { place: Place; edit: boolean }) {
  const { kind, path, names } = place
  const old = useQuery({ ...objectQuery(path), enabled: edit, staleTime: 0, gcTime: 0, refetchOnMount: false })
  const title = edit ? `Edit ${names[kind.word]}` : `New ${kind.noun}`
  if (edit && !old.data) return <Page title={title} icon={kind.word}>{old.error ? <Failure error={old.error} /> : <Waiting rows={8} />}</Page>
  return <Form kind={kind} place={place} title={title} before={edit ? old.data : undefined} />
}

function Form({ kind, place, title, before }: { kind: Kind; place: Place; title: string; before?: { row: Fields; etag: string } }) {
  const navigate = useNavigate()
  const schema = (before ? kind.change : kind.create) ?? {}
  // What was read when the form was opened: events read the object again, and the ETag says what was seen.
  const [first] = useState(before)
  const stored = useMemo(() => fieldsOf(schema, first?.row), [schema, first])
  const [fields, setFields] = useState<Fields>(stored)
  const [errors, setErrors] = useState(new Map<string, string>())
  const [other, setOther] = useState<string[]>([])
  const [write, setWrite] = useState<Write | null>(null)
  const changed = useMemo(() => Object.fromEntries(Object.entries(fields).filter(([n, v]) => JSON.stringify(v) !== JSON.stringify(stored[n]))), [fields, stored])
  const dirty = Object.keys(changed).length > 0 && !write
  useEffect(() => {
    const ask = (e: BeforeUnloadEvent) => e.preventDefault()
    if (dirty) addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [dirty])
  const submit = (e: FormEvent) => {
    e.preventDefault()
    setErrors(new Map())
    setOther([])
    const removed = Object.fromEntries(Object.keys(stored).filter((n) => stored[n] !== undefined && fields[n] === undefined && first).map((n) => [n, emptyOf(stored[n])]))
    const body = first ? { ...changed, ...removed } : Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined))
    setWrite({
      title: first ? `Change ${kind.noun} ${place.names[kind.word]}` : `Create ${kind.noun}`,
      verb: first ? 'Save' : 'Create',
      method: first ? 'PATCH' : 'POST',
      path: place.path,
      body,
      etag: first?.etag,
      noDryRun: kind.word === 'token',
    })
  }
  const invalid = (problem: Problem) => {
    const places = new Map((problem.errors ?? []).map((e) => [e.field.toLowerCase(), e.message]))
    const known = (f: string) => Object.keys(schema.properties ?? {}).some((n) => f === n.toLowerCase() || f.startsWith(`${n.toLowerCase()}.`) || f.startsWith(`${n.toLowerCase()}[`))
    setErrors(places)
    setOther((problem.errors ?? []).filter((e) => !known(e.field.toLowerCase()) || /[.[]/.test(e.field)).map((e) => `${e.field}: ${e.message}`))
    requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-invalid=true], .form-errors')?.focus())
  }
  const place_ = (name: string) => pathOf(kind.item, { ...place.names, [kind.word]: name })
  return (
    <Page title={title} icon={kind.word} lead={first ? <>{capital(kind.noun)} <To path={place.path} /></> : kind.description}>
      <form onSubmit={submit} noValidate>
        <ErrorsOf value={errors}>
          <Stack>
            {other.length > 0 && <Alert color="red" icon={<Icon name="alert" />} title="The API refuses it" role="alert" className="form-errors" tabIndex={-1}>{other.map((o) => <Text size="sm" key={o}>{o}</Text>)}</Alert>}
            <Groups kind={kind} schema={schema} fields={fields} set={setFields} edit={first !== undefined} errors={errors} />
            <Group justify="flex-end" className="form-end">
              <Button variant="default" onClick={() => history.back()}>Cancel</Button>
              <Button type="submit" disabled={first !== undefined && Object.keys(changed).length === 0 && !Object.keys(stored).some((n) => stored[n] !== undefined && fields[n] === undefined)}>{first ? 'Review the change' : 'Review and create'}</Button>
            </Group>
          </Stack>
        </ErrorsOf>
      </form>
      <WriteDialog
        write={write}
        close={() => setWrite(null)}
        invalid={invalid}
        extra={(a) => {
          const once = a.body.token ?? (a.body.data as Fields | undefined)?.key
          return typeof once === 'string' && once !== '' ? <Alert color="blue" icon={<Icon name="info" />} title="It is shown only now"><CodeBlock text={once} label={kind.noun} /></Alert> : null
        }}
        done={() => void navigate({ to: first ? place.path : kind.word === 'token' ? kind.list : place_(String(fields[nameField(schema, kind)] ?? '')) })}
      />
    </Page>
  )
}

const emptyOf = (v: unknown) => (Array.isArray(v) ? [] : typeof v === 'string' ? '' : typeof v === 'object' ? {} : null)

const nameField = (schema: Schema, kind: Kind) => Object.keys(schema.properties ?? {}).find((n) => [`${kind.word}_name`, 'name'].includes(n.toLowerCase())) ?? ''

// fieldsOf are the values of an object by the fields of the form.
function fieldsOf(schema: Schema, row?: Fields): Fields {
  if (!row) return {}
  const out: Fields = {}
  for (const n of Object.keys(schema.properties ?? {})) {
    const v = row[n.toLowerCase()]
    const empty = v === '' || v === null || v === undefined || (Array.isArray(v) && v.length === 0) || (typeof v === 'object' && Object.keys(v as object).length === 0)
    if (!empty) out[n] = v
  }
  return out
}

const titles: Record<string, string> = { hc: 'Health check', dns: 'DNS', max: 'Limits', tls: 'TLS', retry: 'Retries', outlier: 'Outliers', zone: 'Zones', validation: 'Verification' }

// groupsOf divides many fields by the word that their names share, such as upstream_hc_*; the first group has the rest.
function groupsOf(kind: Kind, schema: Schema): [string, string[]][] {
  const names = Object.keys(schema.properties ?? {})
  if (names.length <= 14) return [['', names]]
  const word = (n: string) => n.toLowerCase().replace(new RegExp(`^${kind.word}_`), '').split('_')[0]
  const sizes = new Map<string, number>()
  for (const n of names) sizes.set(word(n), (sizes.get(word(n)) ?? 0) + 1)
  const groups = new Map<string, string[]>([['', []], ['more', []]])
  const late = /seconds|percent|count|certificate|insecure|proxyprotocol|priority|keepalive/i
  for (const n of names) {
    const w = word(n)
    const group = (sizes.get(w) ?? 0) > 1 && !/^(ip|port|name)$/.test(w) ? w : late.test(n) ? 'more' : ''
    groups.set(group, [...(groups.get(group) ?? []), n])
  }
  const { '': head, more, ...rest } = Object.fromEntries(groups)
  return [['', head], ...Object.entries(rest), ...(more.length ? ([['more', more]] as [string, string[]][]) : [])]
}

function Groups({ kind, schema, fields, set, edit, errors }: { kind: Kind; schema: Schema; fields: Fields; set: (f: (old: Fields) => Fields) => void; edit: boolean; errors: Map<string, string> }) {
  const groups = useMemo(() => groupsOf(kind, schema), [kind, schema])
  const required = new Set(schema.required)
  const own = nameField(schema, kind)
  const put = (n: string, v: unknown) => set((old) => ({ ...old, [n]: v }))
  const wrong = (names: string[]) => names.some((n) => errors.has(n.toLowerCase()))
  const [opened, setOpened] = useState<string[]>([])
  const field = (n: string) => {
    const type = typeFieldOf(schema, n)
    if (type) return <ConfigField key={n} name={n} kind={kind} type={String(fields[type] ?? '')} schema={schema} typeField={type} value={fields[n]} onChange={(v) => put(n, v)} />
    return <SchemaField key={n} schema={schema.properties?.[n] ?? {}} value={fields[n]} onChange={(v) => put(n, v)} place={n} label={labelOf(kind, n)} required={required.has(n)} locked={edit && n === own} />
  }
  return (
    <>
      <Paper><div className="form-grid">{groups[0][1].map(field)}</div></Paper>
      {groups.length > 1 && (
        <Accordion variant="separated" multiple className="cards" value={[...new Set([...opened, ...groups.filter(([, names]) => wrong(names)).map(([g]) => g)])]} onChange={setOpened}>
          {groups.slice(1).map(([g, names]) => {
            const n = names.filter((x) => fields[x] !== undefined).length
            return (
              <Accordion.Item key={g} value={g}>
                <Accordion.Control><Group gap="xs">{titles[g] ?? capital(g)}{n > 0 && <Badge size="sm" color="gray">{n} of {names.length} set</Badge>}</Group></Accordion.Control>
                <Accordion.Panel><div className="form-grid">{names.map(field)}</div></Accordion.Panel>
              </Accordion.Item>
            )
          })}
        </Accordion>
      )}
    </>
  )
}

// typeFieldOf is the field that says which form a configuration has.
function typeFieldOf(schema: Schema, name: string): string | undefined {
  if (!/config$/i.test(name)) return undefined
  return Object.keys(schema.properties ?? {}).find((n) => /_type$/i.test(n))
}

// ConfigField is the configuration of a type: a form of its schema, or JSON.
function ConfigField({ name, kind, type, schema, typeField, value, onChange }: { name: string; kind: Kind; type: string; schema: Schema; typeField: string; value: unknown; onChange: (v: unknown) => void }) {
  const { document } = useKinds()
  const [mode, setMode] = useState('form')
  const [variant, setVariant] = useState(0)
  const forms = (resolve(document, schema.properties?.[typeField]) as { 'x-schemas'?: Record<string, string[]> })['x-schemas']?.[type] ?? []
  const config = forms.length > 0 ? { $ref: `#/components/schemas/${forms[Math.min(variant, forms.length - 1)]}` } : undefined
  const shape = config && resolve(document, config)
  const [text, setText] = useState('')
  const [bad, setBad] = useState('')
  const show = (m: string) => {
    if (m === 'json') setText(JSON.stringify(value ?? {}, null, 2))
    setBad('')
    setMode(m)
  }
  if (type === '') return <Text size="sm" c="dimmed" className="wide">Choose a type: its configuration follows.</Text>
  return (
    <Stack gap="sm" className="wide">
      <Group justify="space-between">
        <Group>
          <Text fw={600} size="sm">{labelOf(kind, name)}</Text>
          {forms.length > 1 && <Select aria-label="Form" size="xs" data={forms.map((f, i) => ({ value: String(i), label: f }))} value={String(variant)} onChange={(v) => { setVariant(Number(v)); onChange(undefined) }} allowDeselect={false} />}
        </Group>
        <Group gap="xs">
          {shape?.example !== undefined && <Button size="compact-sm" variant="subtle" onClick={() => { onChange(shape.example); setText(JSON.stringify(shape.example, null, 2)) }}>Use the example</Button>}
          <SegmentedControl aria-label="Editor" size="xs" data={[{ value: 'form', label: 'Form' }, { value: 'json', label: 'JSON' }]} value={mode} onChange={show} />
        </Group>
      </Group>
      {mode === 'form' && config ? (
        <SchemaField schema={config} value={value} onChange={onChange} place={name} label={type} />
      ) : (
        <Textarea
          aria-label={`${labelOf(kind, name)} as JSON`} description={shape?.description} autosize minRows={6} maxRows={30} className="mono-input" value={text} error={bad} spellCheck={false}
          onChange={(e) => {
            setText(e.currentTarget.value)
            try {
              onChange(JSON.parse(e.currentTarget.value))
              setBad('')
            } catch (e) {
              setBad(e instanceof Error ? e.message : 'This is no JSON')
            }
          }}
        />
      )}
    </Stack>
  )
}
