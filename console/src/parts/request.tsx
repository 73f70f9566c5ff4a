// The form that describes a request, as a client would make it. What it asks is a part of the address of the page.
import { Button, Group, Paper, Select, Stack, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useEffect, useState } from 'react'
import { parseCurl } from '../api/curlline'
import { listQuery } from '../api/state'
import { Empty } from './bits'

export interface RequestSearch {
  proxy?: string
  method?: string
  url?: string
  header?: string[]
  address?: string
}

// useAsked is the request in the address, and the proxies that may receive it.
export function useAsked() {
  const search = useSearch({ strict: false }) as RequestSearch
  const proxies = useQuery(listQuery('/proxy', {}))
  const names = (proxies.data?.rows ?? []).map((r) => String(r.name))
  const proxy = search.proxy ?? names[0] ?? ''
  const query = { url: search.url ?? '', method: search.method, header: search.header, address: search.address || undefined }
  return { search, names, none: proxies.data !== undefined && names.length === 0, proxy, query, ready: Boolean(search.url && proxy) }
}

export type Asked = ReturnType<typeof useAsked>

const formOf = (s: RequestSearch) => ({ method: s.method ?? 'GET', url: s.url ?? '', headers: (s.header ?? []).join('\n'), address: s.address ?? '' })

const linesOf = (text: string) => {
  const lines = text.split('\n').map((l) => l.trim()).filter(Boolean)
  return lines.length > 0 ? lines : undefined
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT']

export function RequestForm({ asked, to, verb, busy, label }: { asked: Asked; to: string; verb: string; busy: boolean; label?: string }) {
  const { search, names, proxy } = asked
  const navigate = useNavigate()
  const [form, setForm] = useState(formOf(search))
  useEffect(() => {
    setForm(formOf(search))
  }, [search])
  const ask = (e: FormEvent) => {
    e.preventDefault()
    const url = /^[a-z]+:\/\//i.test(form.url) ? form.url : `http://${form.url}`
    void navigate({ to, search: { proxy: proxy || undefined, method: form.method === 'GET' ? undefined : form.method, url, header: linesOf(form.headers), address: form.address || undefined } } as never)
  }
  const paste = (text: string): boolean => {
    const parsed = parseCurl(text)
    if (parsed) setForm({ ...form, ...parsed, headers: parsed.headers.join('\n') })
    return parsed !== undefined
  }
  return (
    <Paper component="form" aria-label={label} onSubmit={(e) => ask(e as unknown as FormEvent)}>
      <Stack gap="sm">
        <div className="request-line">
          <Select label="Proxy" data={names} value={proxy || null} onChange={(v) => void navigate({ to, search: { ...search, proxy: v ?? undefined } } as never)} allowDeselect={false} />
          <Select label="Method" data={methods.includes(form.method) ? methods : [...methods, form.method]} value={form.method} onChange={(v) => setForm({ ...form, method: v ?? 'GET' })} allowDeselect={false} />
          <TextInput
            label="URL, or a curl line" placeholder="http://shop.example.com/cart" required value={form.url} data-search className="grow"
            onChange={(e) => { const text = e.currentTarget.value; if (!paste(text)) setForm({ ...form, url: text }) }}
          />
          <Button type="submit" loading={busy} disabled={!form.url.trim() || !proxy}>{verb}</Button>
        </div>
        <Group align="flex-start" grow>
          <Textarea label="Headers" placeholder={'x-tier: gold\nauthorization: Bearer ...'} autosize minRows={1} maxRows={8} value={form.headers} onChange={(e) => setForm({ ...form, headers: e.currentTarget.value })} className="mono-input" />
          <TextInput label="Address of the client" placeholder="127.0.0.1" value={form.address} onChange={(e) => setForm({ ...form, address: e.currentTarget.value })} />
        </Group>
      </Stack>
    </Paper>
  )
}

export const NoProxy = (): ReactNode => <Empty icon="proxy" title="There is no proxy">A request needs a proxy that receives it.</Empty>
