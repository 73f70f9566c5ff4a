import { Accordion, ActionIcon, Alert, Button, Group, Modal, Select, Stack, Text, TextInput, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError } from '../api/client'
import { capital, type Kind, type Link as KindLink, nameOf, pathOf, pathOfRow, type Place, resolve, type Row, useKinds } from '../api/kinds'
import { listQuery, objectQuery, type ObjectStatus, revisionsQuery } from '../api/state'
import { CodeBlock, Empty, Failure, Page, Section, Tags, Time, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'
import { Conditions, StatusBadge } from '../parts/status'
import { DataTable } from '../parts/table'
import { type Write, WriteDialog } from '../parts/write'
import { useMay, useSession } from '../session'
import { RevisionTable } from './history'
import { labelOf, tableOf, Value } from './list'

export function ObjectPage({ place }: { place: Place }) {
  const { kind, path, names } = place
  const kinds = useKinds()
  const may = useMay()
  const { elsewhere } = useSession()
  const navigate = useNavigate()
  const curl = useCurl()
  const [write, setWrite] = useState<Write | null>(null)
  const [copying, setCopying] = useState(false)
  const { data, error, refetch } = useQuery(objectQuery(path))
  const name = names[kind.word] ?? ''
  if (!data) {
    const gone = error instanceof ApiError && error.status === 404
    return (
      <Page title={name} icon={kind.word} lead={capital(kind.noun)}>
        {gone ? <Empty icon={kind.word} title={`There is no ${kind.noun} ${name}`} action={<Button component={Link} to={kind.owner ? parentOf(path) : kind.list} variant="default">{capital(kind.owner || kind.plural)}</Button>}>It was deleted, or has never existed.</Empty> : error ? <Failure error={error} retry={() => void refetch()} /> : <Waiting rows={6} />}
      </Page>
    )
  }
  const row = data.row
  const status = row.status as ObjectStatus | undefined
  const writes = kind.word === 'token' ? may.admin : may.write
  const children = kinds.all.filter((k) => k.owner === kind.word && k.word !== 'token')
  return (
    <Page
      title={name}
      icon={kind.word}
      lead={<>{capital(kind.noun)}{kind.owner && <> of {kind.owner} <To path={parentOf(path)}>{names[kind.owner]}</To></>} {status && <StatusBadge status={status} />} <Tags tags={row.tags} /></>}
      aside={
        <>
          <CopyCurl line={curl('GET', path)} />
          {writes && kind.copy && <Button variant="default" leftSection={<Icon name="copy" size={16} />} onClick={() => setCopying(true)}>Copy</Button>}
          {writes && kind.canDelete && (
            <Button
              variant="default"
              className="danger"
              leftSection={<Icon name="trash" size={16} />}
              onClick={() => setWrite({ title: `Delete ${kind.noun} ${name}`, verb: kind.word === 'token' ? 'Revoke' : 'Delete', method: 'DELETE', path, etag: data.etag, danger: true, noDryRun: kind.word === 'token' })}
            >
              {kind.word === 'token' ? 'Revoke' : 'Delete'}
            </Button>
          )}
          {writes && kind.change && <Button component={Link} to={`/edit${path}`} leftSection={<Icon name="edit" size={16} />}>Edit</Button>}
        </>
      }
    >
      {elsewhere && <Alert color="blue" icon={<Icon name="info" />} title="Changed elsewhere">{elsewhere}</Alert>}
      {status && <Section title="Status"><Conditions status={status} /></Section>}
      <Fields kind={kind} row={row} />
      {children.map((k) => <Children key={k.word} kind={k} names={names} writes={writes} />)}
      {kind.links.map((l) => <Links key={l.kind} owner={kind} link={l} names={names} writes={writes} open={setWrite} />)}
      {kind.users.map((u) => <UsersOf key={u.path} of={kind} word={u.kind} path={pathOf(u.path, names)} name={name} writes={writes} open={setWrite} />)}
      {kind.word !== 'token' && <Changes path={path} />}
      <WriteDialog write={write} close={() => setWrite(null)} done={(a) => { if (write?.method === 'DELETE' && write.path === path && a.status < 300) void navigate({ to: kind.owner ? parentOf(path) : kind.list }) }} />
      {copying && <CopyDialog kind={kind} name={name} close={() => setCopying(false)} open={setWrite} />}
    </Page>
  )
}

const parentOf = (path: string) => path.replace(/\/[^/]+\/[^/]+$/, '')

const noField = new Set(['tags', 'status', 'create_ts', 'update_ts'])

// defaultOf is the default that the description of a field names.
const defaultOf = (description = ''): string => /Default: ([^.:]+?)(?:, |\. |\.$)/.exec(description)?.[1] ?? ''

function Fields({ kind, row }: { kind: Kind; row: Row }) {
  const { document } = useKinds()
  const described = new Map(Object.entries(kind.change?.properties ?? kind.create?.properties ?? {}).map(([n, s]) => [n.toLowerCase(), resolve(document, s).description ?? '']))
  const all = Object.entries(row).filter(([f]) => !noField.has(f) && f !== `${kind.word}_id` && f !== `${kind.word}_name` && !(kind.owner && f === `${kind.owner}_name`) && f !== 'name')
  const isDefault = ([f, v]: [string, unknown]) => {
    if (kind.word === 'secret' || !kind.change) return v === '' || v === null
    const d = defaultOf(described.get(f))
    return v === '' || v === null || (Array.isArray(v) && v.length === 0) || (d !== '' && String(v) === d) || (d === '' && (v === false || v === 0)) || (typeof v === 'object' && Object.keys(v as object).length === 0)
  }
  const set = all.filter((e) => !isDefault(e))
  const rest = all.filter(isDefault)
  const one = ([f, v]: [string, unknown]) => (
    <div key={f} className="field">
      <dt><Tooltip label={described.get(f)} disabled={!described.get(f)}><span tabIndex={described.get(f) ? 0 : undefined}>{labelOf(kind, f)}</span></Tooltip></dt>
      <dd>{typeof v === 'object' && v !== null && !Array.isArray(v) ? <CodeBlock text={JSON.stringify(v, null, 2)} label={labelOf(kind, f)} /> : <NameOr field={f} value={v} description={described.get(f) ?? ''} />}</dd>
    </div>
  )
  return (
    <Section title="Settings" aside={<Text size="sm" c="dimmed">{row.create_ts ? <>created <Time at={row.create_ts as string} /></> : null}{row.update_ts && row.update_ts !== row.create_ts ? <>, changed <Time at={row.update_ts as string} /></> : null}</Text>}>
      <div className="panel">
        {set.length > 0 ? <dl className="fields-grid">{set.map(one)}</dl> : <Text size="sm" c="dimmed">Every setting has its default.</Text>}
        {rest.length > 0 && (
          <Accordion variant="default" chevronPosition="left" className="defaults">
            <Accordion.Item value="rest">
              <Accordion.Control>{rest.length} {rest.length === 1 ? 'setting has its' : 'settings have their'} default</Accordion.Control>
              <Accordion.Panel><dl className="fields-grid">{rest.map(one)}</dl></Accordion.Panel>
            </Accordion.Item>
          </Accordion>
        )}
      </div>
    </Section>
  )
}

// kindNamed is the kind of object that a field names, as its description says.
export function kindNamed(description: string): string {
  const word = /[Nn]ame of (?:the|a|an) (secret|upstream|key set|proxy|service|filter|globalconfig_\w+|global config)/.exec(description)?.[1] ?? ''
  return word.replace('key set', 'keyset').replace(/^global.*/, 'globalconfig')
}

function NameOr({ field, value, description }: { field: string; value: unknown; description: string }) {
  const kind = kindNamed(description)
  if (kind && typeof value === 'string' && value !== '') return <To path={`/${kind}/${value}`}>{value}</To>
  return <Value value={value} field={field} />
}

function Children({ kind, names, writes }: { kind: Kind; names: Record<string, string>; writes: boolean }) {
  const path = pathOf(kind.list, names)
  const { data } = useQuery(listQuery(path, kind.read?.properties?.status ? { status: true } : {}))
  const add = writes && <Button component={Link} to={`/new${path}`} size="xs" variant="light" leftSection={<Icon name="plus" size={14} />}>New {kind.noun}</Button>
  return (
    <Section title={capital(kind.plural)} aside={add}>
      {!data ? <Waiting /> : data.rows.length === 0 ? <Empty icon={kind.word} title={`There are no ${kind.plural}`} action={add} /> : <DataTable rows={data.rows} columns={tableOf(kind, names)} rowKey={(r) => nameOf(kind, r)} label={capital(kind.plural)} />}
    </Section>
  )
}

// Links are the objects that are attached to this one.
function Links({ owner, link, names, writes, open }: { owner: Kind; link: KindLink; names: Record<string, string>; writes: boolean; open: (w: Write) => void }) {
  const kinds = useKinds()
  const kind = kinds.by.get(link.kind)
  const path = pathOf(link.path, names)
  const { data } = useQuery(listQuery(path, { status: true }))
  const [adding, setAdding] = useState(false)
  if (!kind) return null
  const add = writes && <Button size="xs" variant="light" leftSection={<Icon name="link" size={14} />} onClick={() => setAdding(true)}>Attach {kind.noun}</Button>
  const columns = tableOf(kind, {})
  if (writes)
    columns.push({
      title: '',
      width: 44,
      cell: (r) => (
        <Tooltip label="Detach">
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Detach ${nameOf(kind, r)}`} onClick={() => open({ title: `Detach ${kind.noun} ${nameOf(kind, r)}`, verb: 'Detach', method: 'DELETE', path: `${path}/${nameOf(kind, r)}`, danger: true })}>
            <Icon name="close" size={15} />
          </ActionIcon>
        </Tooltip>
      ),
    })
  return (
    <Section title={`Attached ${kind.plural}`} aside={add}>
      {!data ? <Waiting /> : data.rows.length === 0 ? <Text size="sm" c="dimmed">No {kind.noun} is attached.</Text> : <DataTable rows={data.rows} columns={columns} rowKey={(r) => nameOf(kind, r)} label={`Attached ${kind.plural}`} />}
      {adding && <AttachDialog kind={kind} title={`Attach ${kind.noun} to the ${owner.noun}`} has={data?.rows ?? []} close={() => setAdding(false)} next={(n) => open({ title: `Attach ${kind.noun} ${n}`, verb: 'Attach', method: 'POST', path: `${path}/${n}` })} />}
    </Section>
  )
}

function AttachDialog({ kind, title, has, close, next }: { kind: Kind; title: string; has: Row[]; close: () => void; next: (name: string) => void }) {
  const { data } = useQuery(listQuery(kind.list, kind.read?.properties?.status ? { status: true } : {}))
  const [name, setName] = useState<string | null>(null)
  const taken = new Set(has.map((r) => nameOf(kind, r)))
  const free = (data?.rows ?? []).map((r) => nameOf(kind, r)).filter((n) => !taken.has(n))
  return (
    <Modal opened onClose={close} title={title} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        {data && free.length === 0 ? (
          <Empty icon={kind.word} title={`There is no other ${kind.noun}`} action={<Button component={Link} to={`/new${kind.list}`}>New {kind.noun}</Button>} />
        ) : (
          <Select label={capital(kind.noun)} data={free} value={name} onChange={setName} searchable data-autofocus nothingFoundMessage="Nothing matches" limit={100} />
        )}
        <Group justify="flex-end">
          <Button disabled={!name} onClick={() => { close(); next(name ?? '') }}>Next</Button>
        </Group>
      </Stack>
    </Modal>
  )
}

function CopyDialog({ kind, name, close, open }: { kind: Kind; name: string; close: () => void; open: (w: Write) => void }) {
  const [to, setTo] = useState(`${name}-copy`)
  const { by, document } = useKinds()
  const deep = kind.word === 'service' && Boolean(document.paths['/service/deepcopy/{a}/{b}'] && by.get('route'))
  const [host, setHost] = useState('')
  return (
    <Modal opened onClose={close} title={`Copy ${kind.noun} ${name}`} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <TextInput label="Name of the copy" value={to} onChange={(e) => setTo(e.currentTarget.value)} data-autofocus />
        {deep && <TextInput label="Host of the copy" description="Two services of a proxy cannot have the same host" value={host} onChange={(e) => setHost(e.currentTarget.value)} />}
        <Text size="sm" c="dimmed">{deep ? 'Its routes and links are copied too. ' : ''}The copy is attached to nothing.</Text>
        <Group justify="flex-end">
          <Button disabled={!to} onClick={() => { close(); open({ title: `Copy ${kind.noun} ${name}`, verb: 'Copy', method: 'POST', path: `${deep ? '/service/deepcopy' : kind.copy}/${encodeURIComponent(name)}/${encodeURIComponent(to)}`, body: host ? { fqdn: host } : undefined }) }}>Next</Button>
        </Group>
      </Stack>
    </Modal>
  )
}

// UsersOf are the objects that attach or name this one. Those that attach it can be changed from here too.
function UsersOf({ of, word, path, name, writes, open }: { of: Kind; word: string; path: string; name: string; writes: boolean; open: (w: Write) => void }) {
  const kind = useKinds().by.get(word)
  const { data } = useQuery(listQuery(path))
  const [adding, setAdding] = useState(false)
  const link = kind?.owner === '' ? kind.links.find((l) => l.kind === of.word) : undefined
  if (!kind || !data || (data.rows.length === 0 && !(link && writes))) return null
  const linkPath = (user: string) => `${pathOf(link?.path ?? '', { [kind.word]: user })}/${name}`
  return (
    <Section title={link ? `Attached to ${kind.plural}` : `Used by ${kind.plural}`} aside={link && writes && <Button size="xs" variant="light" leftSection={<Icon name="link" size={14} />} onClick={() => setAdding(true)}>Attach to a {kind.noun}</Button>}>
      {data.rows.length === 0 ? (
        <Text size="sm" c="dimmed">It is attached to no {kind.noun}.</Text>
      ) : (
        <Group gap="lg" className="panel">
          {data.rows.slice(0, 200).map((r) => (
            <Group gap={4} key={pathOfRow(kind, r, {})} wrap="nowrap">
              <To path={pathOfRow(kind, r, {})}>{kind.owner ? `${String(r[`${kind.owner}_name`])}/${nameOf(kind, r)}` : nameOf(kind, r)}</To>
              {link && writes && (
                <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Detach from ${nameOf(kind, r)}`} onClick={() => open({ title: `Detach from ${kind.noun} ${nameOf(kind, r)}`, verb: 'Detach', method: 'DELETE', path: linkPath(nameOf(kind, r)), danger: true })}><Icon name="close" size={15} /></ActionIcon>
              )}
            </Group>
          ))}
          {data.rows.length > 200 && <Text size="sm">and {data.rows.length - 200} more</Text>}
        </Group>
      )}
      {adding && <AttachDialog kind={kind} title={`Attach to a ${kind.noun}`} has={data.rows} close={() => setAdding(false)} next={(user) => open({ title: `Attach to ${kind.noun} ${user}`, verb: 'Attach', method: 'POST', path: linkPath(user) })} />}
    </Section>
  )
}

function Changes({ path }: { path: string }) {
  const { data } = useQuery(revisionsQuery({ object: path, limit: 5 }))
  if (!data || data.length === 0) return null
  return (
    <Section title="Changes" aside={<Button component={Link} to="/history" search={{ object: path } as never} size="xs" variant="subtle">All changes</Button>}>
      <RevisionTable rows={data} />
    </Section>
  )
}
