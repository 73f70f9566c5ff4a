// What is in front of what: proxies, services, routes, their filters, upstreams. Every step is linear in what it reads;
// what is shown is bounded, however much there is.
import type { Level } from './verdict'

type Fields = Record<string, unknown>

export interface Config {
  upstreams?: Fields[]
  filters?: Fields[]
  services?: Fields[]
  proxies?: Fields[]
}

export const columns = ['proxy', 'service', 'route', 'filter', 'upstream'] as const
export type Column = (typeof columns)[number]

// Thing is a place of the map. The filters of a route are one place.
export interface Thing {
  // id is the path of the object; that of filters ends with #.
  id: string
  column: Column
  label: string
  hint: string
  // links are the objects of the place, by their paths.
  links: string[]
  children: string[]
  parents: string[]
  // text is what the search looks into.
  text: string
}

export interface Health {
  level: Level
  word: string
  message: string
}

export type Graph = Map<string, Thing>

const names = (v: unknown) => (Array.isArray(v) ? v.map(String) : [])
const text = (v: unknown) => (typeof v === 'string' || typeof v === 'number' ? String(v) : '')
export const loose = '#unattached'

// graphOf makes the map of a configuration document.
export function graphOf(config: Config): Graph {
  const graph: Graph = new Map()
  const add = (column: Column, id: string, label: string, hint: string, links = [id], more = '') => {
    const thing: Thing = { id, column, label, hint, links, children: [], parents: [], text: `${column} ${label} ${hint} ${more}`.toLowerCase() }
    graph.set(id, thing)
    return thing
  }
  const join = (a: Thing, id: string) => {
    const b = graph.get(id)
    if (!b || a.children.at(-1) === id) return
    a.children.push(id)
    b.parents.push(a.id)
  }
  for (const u of config.upstreams ?? []) {
    const address = [text(u.upstream_ip), text(u.upstream_port)].filter(Boolean).join(':')
    add('upstream', `/upstream/${text(u.upstream_name)}`, text(u.upstream_name), address, undefined, names(u.tags).join(' '))
  }
  const filters = new Map((config.filters ?? []).map((f) => [text(f.filter_name), f]))
  const targets = new Map([...filters].map(([name, f]) => [name, named(f.filter_config).filter((u) => graph.has(u))]))
  for (const s of config.services ?? []) {
    const at = `/service/${text(s.service_name)}`
    const service = add('service', at, text(s.service_name), text(s.fqdn), undefined, `${names(s.tags).join(' ')} ${names(s.filters).join(' ')}`)
    for (const r of (s.routes as Fields[] | undefined) ?? []) {
      const route = add('route', `${at}/route/${text(r.route_name)}`, text(r.route_name), text(r.route_prefix), undefined, `${text(s.service_name)} ${names(r.tags).join(' ')}`)
      join(service, route.id)
      const passed = [...new Set([...names(s.filters), ...names(r.filters)])]
      let last = route
      if (passed.length > 0) {
        const types = passed.map((f) => text(filters.get(f)?.filter_type)).join(' ')
        last = add('filter', `${route.id}#`, passed.join(', '), passed.length === 1 ? types : `${passed.length} filters`, passed.map((f) => `/filter/${f}`), types)
        join(route, last.id)
      }
      for (const u of new Set([...names(r.upstreams).map((n) => `/upstream/${n}`), ...passed.flatMap((f) => targets.get(f) ?? [])])) join(last, u)
    }
  }
  addProxies(config, graph, add, join)
  return graph
}

function addProxies(config: Config, graph: Graph, add: (column: Column, id: string, label: string, hint: string, links?: string[]) => Thing, join: (a: Thing, id: string) => void) {
  for (const p of config.proxies ?? []) {
    const proxy = add('proxy', `/proxy/${text(p.name)}`, text(p.name), [text(p.http_port), text(p.https_port)].filter((t) => t !== '' && t !== '0').join(', '))
    for (const s of names(p.services)) join(proxy, `/service/${s}`)
  }
  const free = [...graph.values()].filter((t) => t.column === 'service' && t.parents.length === 0)
  if (free.length === 0) return
  const none = add('proxy', loose, 'no proxy', 'not served', [])
  for (const s of free) join(none, s.id)
}

// named returns the upstreams that the configuration of a filter names, as that of a canary or a mirror does.
function named(config: unknown, key = ''): string[] {
  if (typeof config === 'string') return /upstream/.test(key) ? [`/upstream/${config}`] : []
  if (Array.isArray(config)) return config.flatMap((v) => named(v, key))
  if (typeof config !== 'object' || config === null) return []
  return Object.entries(config).flatMap(([k, v]) => named(v, k))
}

export interface Shown {
  thing: Thing
  // children are those that are shown, and more how many are not.
  children: string[]
  more: number
}

export interface View {
  roots: string[]
  shown: Map<string, Shown>
  // matches is how many places a search has found, and used how many of them are shown; 0 without one.
  matches: number
  used: number
}

// page is how many children of a place are shown at first. A search shows at most found places, and as many as lead to them
// until there are most.
export const page = 25
const found = 60
const most = 200

// viewOf chooses what is shown: what is open, or what a search finds, with all that leads there and what follows.
export function viewOf(graph: Graph, open: ReadonlySet<string>, sizes: ReadonlyMap<string, number>, q: string): View {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const all = [...graph.values()]
  const hits = words.length > 0 ? all.filter((t) => words.every((w) => t.text.includes(w))) : []
  const near = new Set<string>()
  let used = 0
  for (; used < Math.min(hits.length, found) && near.size < most; used++) addParents(graph, hits[used].id, near)
  const shown = new Map<string, Shown>()
  const see = (id: string) => {
    const thing = graph.get(id)
    if (!thing || shown.has(id)) return
    const opened = open.has(id) || thing.column === 'route' || thing.column === 'filter'
    const candidates = opened ? thing.children : thing.children.filter((c) => near.has(c))
    const children = candidates.slice(0, sizes.get(id) ?? (thing.column === 'proxy' || thing.column === 'service' ? (opened ? page : found) : 100))
    shown.set(id, { thing, children, more: opened ? thing.children.length - children.length : 0 })
    for (const c of children) see(c)
  }
  const roots = all.filter((t) => t.column === 'proxy' && (words.length === 0 || near.has(t.id))).map((t) => t.id)
  for (const r of roots) see(r)
  // An upstream that no route uses is found too.
  for (const id of near) if (!shown.has(id) && graph.get(id)?.parents.length === 0) {
    roots.push(id)
    see(id)
  }
  return { roots, shown, matches: hits.length, used }
}

function addParents(graph: Graph, id: string, into: Set<string>) {
  if (into.has(id)) return
  into.add(id)
  for (const p of (graph.get(id)?.parents ?? []).slice(0, found)) addParents(graph, p, into)
}

export interface Place {
  id: string
  column: number
  row: number
  // more says that the place is that of what is not shown.
  more?: boolean
}

// placesOf gives each place a column and a row. Below a place is what follows it; an upstream is beside the first that
// uses it, or below that.
export function placesOf(view: View): Place[] {
  const places: Place[] = []
  const seen = new Set<string>()
  const upstreams: Place[] = []
  let row = 0
  const put = (id: string) => {
    const s = view.shown.get(id)
    if (!s || seen.has(id)) return
    seen.add(id)
    const place = { id, column: columns.indexOf(s.thing.column), row }
    if (s.thing.column === 'upstream') {
      upstreams.push(place)
      return
    }
    places.push(place)
    for (const c of s.children) put(c)
    if (row === place.row && s.thing.column !== 'filter') row++
    if (s.more > 0) places.push({ id, column: place.column + 1, row: row++, more: true })
  }
  for (const r of view.roots) put(r)
  let last = -1
  for (const u of upstreams.sort((a, b) => a.row - b.row)) {
    last = Math.max(last + 1, u.row)
    u.row = last
  }
  return [...places, ...upstreams]
}
