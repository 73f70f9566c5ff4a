import type { QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { send } from './client'

// Event is one of GET /events.
export interface Event {
  id: string
  event: string
  at: string
  revision?: number
  actor?: string
  request?: string
  changes?: number
  message?: string
  proxies?: number
  took_ms?: number
  proxy?: string
  envoy?: string
  version?: string
  replica?: string
  type?: string
  resources?: string[]
  more?: number
  object?: string
  code?: string
}

// Feed is what the page knows of the stream.
export interface Feed {
  // connected is false until the stream has begun, and while it is lost.
  state: 'connecting' | 'live' | 'lost'
  events: Event[]
  // lost is when the connection was lost, in ms.
  lost: number
}

const kept = 500
const silence = 40_000 // the server says something every 15 s
let feed: Feed = { state: 'connecting', events: [], lost: 0 }
const listeners = new Set<() => void>()

function set(change: Partial<Feed>) {
  feed = { ...feed, ...change }
  for (const f of listeners) f()
}

export const useFeed = () =>
  useSyncExternalStore(
    (f) => {
      listeners.add(f)
      return () => listeners.delete(f)
    },
    () => feed,
  )

export const clearFeed = () => set({ events: [] })

// follow reads the stream until the signal, and tells queries what has changed. It connects again by itself.
export async function follow(queries: QueryClient, signal: AbortSignal) {
  const refresh = refresher(queries)
  let last = ''
  let wait = 1000
  while (!signal.aborted) {
    try {
      await read(signal, last, {
        began: () => {
          if (feed.state === 'lost') refresh(true)
          wait = 1000
          set({ state: 'live' })
        },
        event: (e) => {
          set({ events: [e, ...feed.events].slice(0, kept) })
          if (e.event !== 'ack') refresh(e.event === 'change' || e.event === 'reset')
        },
        id: (id) => {
          last = id
        },
        // Health has no events of its own: each sign of life asks for it again.
        ping: () => refresh(false),
      })
    } catch {
      // The reason does not matter: it is tried again.
    }
    if (signal.aborted) return
    if (feed.state !== 'lost') set({ state: 'lost', lost: Date.now() })
    await new Promise((done) => setTimeout(done, wait))
    wait = Math.min(wait * 2, 10_000)
  }
}

interface Reader {
  began: () => void
  event: (e: Event) => void
  id: (id: string) => void
  ping: () => void
}

async function read(signal: AbortSignal, last: string, to: Reader) {
  const stop = new AbortController()
  const end = () => stop.abort()
  signal.addEventListener('abort', end)
  let timer = setTimeout(end, silence)
  try {
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (last) headers['Last-Event-ID'] = last
    const res = await send('/events', { headers, signal: stop.signal })
    if (!res.ok || !res.body) throw new Error(`events: ${res.status}`)
    to.began()
    const chunks = res.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { done, value } = await chunks.read()
      if (done) return
      clearTimeout(timer)
      timer = setTimeout(end, silence)
      text += value
      const parts = text.split('\n\n')
      text = parts.pop() ?? ''
      for (const part of parts) take(part, to)
    }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
    stop.abort()
  }
}

function take(part: string, to: Reader) {
  let id = ''
  let data = ''
  for (const line of part.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4)
    else if (line.startsWith('data: ')) data += line.slice(6)
    else if (line.startsWith(':')) to.ping()
  }
  if (id) to.id(id)
  if (data) to.event({ ...(JSON.parse(data) as Event), id })
}

// refresher returns a function that has what is shown read again: at once, and while events keep coming, once a second.
function refresher(queries: QueryClient) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let stored = false
  let before = 0
  return (change: boolean) => {
    stored ||= change
    if (timer) return
    timer = setTimeout(
      () => {
        timer = undefined
        before = Date.now()
        void queries.invalidateQueries({ queryKey: ['live'] })
        if (stored) void queries.invalidateQueries({ queryKey: ['stored'] })
        stored = false
      },
      Math.max(150, before + 1000 - Date.now()),
    )
  }
}
