// The command palette: every page, and every object by its name.
import { Kbd, Modal, Text, TextInput } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { useQueries } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useMemo, useState } from 'react'
import { capital, nameOf, pathOfRow, useKinds } from '../api/kinds'
import { listQuery } from '../api/state'
import { useMay } from '../session'
import { Icon } from './icon'

interface Entry {
  label: string
  hint: string
  to: string
  icon: string
}

const pages: Entry[] = [
  { label: 'Overview', hint: 'page', to: '/', icon: 'overview' },
  { label: 'Explain a request', hint: 'page', to: '/explain', icon: 'explain' },
  { label: 'Map', hint: 'page', to: '/map', icon: 'map' },
  { label: 'Limits', hint: 'page', to: '/limits', icon: 'limits' },
  { label: 'Document', hint: 'page', to: '/document', icon: 'document' },
  { label: 'Envoys', hint: 'page', to: '/envoys', icon: 'envoys' },
  { label: 'Events', hint: 'page', to: '/events', icon: 'events' },
  { label: 'History', hint: 'page', to: '/history', icon: 'history' },
  { label: 'First steps', hint: 'page', to: '/start', icon: 'play' },
  { label: 'Routes', hint: 'page', to: '/route', icon: 'route' },
]

export function Palette({ opened, open, close }: { opened: boolean; open: () => void; close: () => void }) {
  useHotkeys([['mod+K', open], ['/', () => document.querySelector<HTMLInputElement>('[data-search]')?.focus()]])
  return (
    <Modal opened={opened} onClose={close} withCloseButton={false} padding={0} size="lg" yOffset="12vh" attributes={{ content: { 'aria-label': 'Go to' } }}>
      {opened && <Inside close={close} />}
    </Modal>
  )
}

function Inside({ close }: { close: () => void }) {
  const navigate = useNavigate()
  const may = useMay()
  const { all } = useKinds()
  const top = all.filter((k) => k.owner === '')
  const lists = useQueries({ queries: top.map((k) => listQuery(k.list, k.read?.properties?.status ? { status: true } : {})) })
  const [q, setQ] = useState('')
  const [at, setAt] = useState(0)
  const entries = useMemo(() => {
    const out: Entry[] = [...pages]
    for (const k of top) out.push({ label: capital(k.plural), hint: 'page', to: k.list, icon: k.word })
    if (may.write) for (const k of top) if (k.create && (k.word !== 'token' || may.admin)) out.push({ label: `New ${k.noun}`, hint: 'action', to: `/new${k.list}`, icon: 'plus' })
    for (const [i, k] of top.entries()) for (const r of lists[i].data?.rows ?? []) out.push({ label: nameOf(k, r), hint: k.noun, to: pathOfRow(k, r, {}), icon: k.word })
    return out
  }, [top, lists, may.write, may.admin])
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const found = entries.filter((e) => words.every((w) => `${e.label} ${e.hint}`.toLowerCase().includes(w))).slice(0, 50)
  const chosen = Math.min(at, found.length - 1)
  const go = (e: Entry | undefined) => {
    if (!e) return
    close()
    void navigate({ to: e.to })
  }
  const key = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (step) {
      e.preventDefault()
      const next = (chosen + step + found.length) % Math.max(1, found.length)
      setAt(next)
      document.getElementById(`go-${next}`)?.scrollIntoView({ block: 'nearest' })
    } else if (e.key === 'Enter') {
      e.preventDefault()
      go(found[chosen])
    }
  }
  return (
    <>
      <TextInput
        variant="unstyled" size="md" px="md" placeholder="Go to a page or an object" aria-label="Go to a page or an object" value={q} data-autofocus role="combobox" aria-expanded="true" aria-controls="go" aria-activedescendant={found.length ? `go-${chosen}` : undefined}
        onChange={(e) => { setQ(e.currentTarget.value); setAt(0) }} onKeyDown={key} rightSection={<Kbd size="xs">Esc</Kbd>} autoComplete="off"
      />
      <div className="palette" role="listbox" id="go" aria-label="Results" tabIndex={-1}>
        {found.map((e, i) => (
          <div key={e.to + e.label} id={`go-${i}`} role="option" aria-selected={i === chosen} className="palette-entry" onMouseMove={() => setAt(i)} onClick={() => go(e)}>
            <Icon name={e.icon} size={16} /><span className="grow">{e.label}</span><Text size="xs" c="dimmed">{e.hint}</Text>
          </div>
        ))}
        {found.length === 0 && <Text size="sm" c="dimmed" p="md">Nothing has this name.</Text>}
      </div>
    </>
  )
}
