// What the OpenAPI document says of the kinds of objects. A kind that it gets is in the console without a change here.
import { useSuspenseQuery } from '@tanstack/react-query'
import { call } from './client'

export interface Schema {
  $ref?: string
  type?: string
  description?: string
  enum?: (string | number)[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  additionalProperties?: boolean | Schema
  minimum?: number
  maximum?: number
  maxLength?: number
  pattern?: string
  example?: unknown
  default?: unknown
  nullable?: boolean
  'x-type'?: string
}

interface Operation {
  summary?: string
  description?: string
  requestBody?: { $ref?: string; content?: Record<string, { schema: Schema }> }
  responses: Record<string, { $ref?: string; content?: Record<string, { schema: Schema }> }>
}

export interface Document {
  info: { version: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; responses: Record<string, never>; requestBodies: Record<string, never> }
}

// Link attaches an object to one of this kind.
export interface Link {
  kind: string
  path: string
}

export interface Kind {
  word: string
  // owner is the kind that has those of this one, such as the service of a route.
  owner: string
  list: string
  item: string
  // noun and plural are words of a sentence, such as "global config".
  noun: string
  plural: string
  description: string
  // create and change are the fields of a form; undefined if there is no such call.
  create?: Schema
  change?: Schema
  read?: Schema
  canDelete: boolean
  copy: string
  links: Link[]
  // users are lists of objects that attach or name one of this kind.
  users: Link[]
}

export interface Kinds {
  document: Document
  all: Kind[]
  by: Map<string, Kind>
}

export const openapi = {
  queryKey: ['openapi'],
  queryFn: async () => kindsOf((await call<Document>('GET', '/openapi.json')).body),
  staleTime: Number.POSITIVE_INFINITY,
}

export const useKinds = (): Kinds => useSuspenseQuery(openapi).data

// resolve follows references, and joins the parts of allOf.
export function resolve(doc: Document, schema: Schema | undefined): Schema {
  let s = schema ?? {}
  while (s.$ref) {
    const target = doc.components.schemas[s.$ref.replace('#/components/schemas/', '')]
    s = { ...target, ...(s.description ? { description: s.description } : {}) }
  }
  if (s.allOf) {
    const parts = s.allOf.map((p) => resolve(doc, p))
    const { allOf: _, ...own } = s
    s = parts.reduce((a, b) => ({ ...a, ...b, properties: { ...a.properties, ...b.properties } }), {})
    s = { ...s, ...own, properties: { ...s.properties, ...own.properties } }
  }
  return s
}

const word = (path: string) => /\/([a-z]+)$/.exec(path)?.[1] ?? ''
const listPath = /^(\/[a-z]+\/\{[a-z]+\})?\/[a-z]+$/

export function kindsOf(document: Document): Kinds {
  const all: Kind[] = []
  for (const [path, calls] of Object.entries(document.paths)) {
    const item = `${path}/{${word(path)}}`
    const one = document.paths[item]
    // A list of its own has a call that creates, and objects that are created by no call on their link.
    if (listPath.test(path) && calls.get && calls.post && one?.delete && !one.post) all.push(kindOf(document, path, item))
  }
  const by = new Map(all.map((k) => [k.word === 'token' && k.owner ? `${k.owner} token` : k.word, k]))
  for (const k of all) addLinks(document, k, by)
  return { document, all, by }
}

function kindOf(document: Document, list: string, item: string): Kind {
  const at = document.paths[list]
  const one = document.paths[item]
  const plural = /^List (?:the )?(.+?)(?: of .*)?$/.exec(at.get.summary ?? '')?.[1] ?? word(list)
  return {
    word: word(list),
    owner: /\{([a-z]+)\}/.exec(list)?.[1] ?? '',
    list,
    item,
    noun: /^(?:Read one|Revoke an?|Delete an?) (.+)$/.exec(one.get?.summary ?? '')?.[1] ?? plural.replace(/s$/, ''),
    plural,
    description: document.tags.find((t) => t.name === word(list))?.description ?? '',
    create: bodyOf(document, at.post),
    change: one.patch && bodyOf(document, one.patch),
    read: itemOf(document, at.get),
    canDelete: Boolean(one.delete),
    copy: document.paths[`${list}/copy/{a}/{b}`]?.post ? `${list}/copy` : '',
    links: [],
    users: [],
  }
}

function addLinks(document: Document, k: Kind, by: Map<string, Kind>) {
  for (const [path, calls] of Object.entries(document.paths)) {
    const kind = word(path)
    if (!kind || !calls.get || path !== `${k.item}/${kind}` || !by.has(kind)) continue
    if (document.paths[`${path}/{${kind}}`]?.post) k.links.push({ kind, path })
    else if (!calls.post) k.users.push({ kind, path })
  }
}

function bodyOf(document: Document, op: Operation): Schema | undefined {
  let body = op.requestBody
  if (body?.$ref) body = document.components.requestBodies[body.$ref.replace('#/components/requestBodies/', '')]
  const schema = body?.content?.['application/json']?.schema
  return schema && resolve(document, schema)
}

// itemOf returns the schema of the objects in the answer of a list.
function itemOf(document: Document, op: Operation): Schema | undefined {
  let answer = op.responses['200']
  if (answer.$ref) answer = document.components.responses[answer.$ref.replace('#/components/responses/', '')]
  const data = resolve(document, resolve(document, answer.content?.['application/json']?.schema).properties?.data)
  const rows = resolve(document, Object.values(data.properties ?? {})[0])
  return rows.items && resolve(document, rows.items)
}

// Place is what a path of the API is about.
export interface Place {
  kind: Kind
  // names are those in the path, by the words before them.
  names: Record<string, string>
  path: string
  isList: boolean
}

// placeOf returns what a path is about; undefined if it is about no object.
export function placeOf(kinds: Kinds, path: string): Place | undefined {
  for (const kind of kinds.all) {
    for (const template of [kind.item, kind.list]) {
      const names = match(template, path)
      if (names) return { kind, names, path, isList: template === kind.list }
    }
  }
  return undefined
}

function match(template: string, path: string): Record<string, string> | undefined {
  const want = template.split('/')
  const have = path.split('/')
  if (want.length !== have.length) return undefined
  const names: Record<string, string> = {}
  for (const [i, w] of want.entries()) {
    const name = /^\{(.+)\}$/.exec(w)?.[1]
    if (name && have[i]) names[name] = decodeURIComponent(have[i])
    else if (w !== have[i]) return undefined
  }
  return names
}

// pathOf puts names into a template.
export const pathOf = (template: string, names: Record<string, string>) =>
  template.replace(/\{([a-z]+)\}/g, (_, w: string) => encodeURIComponent(names[w] ?? ''))

export type Row = Record<string, unknown>

// nameOf is the name of an object.
export const nameOf = (kind: Kind, row: Row): string => String(row[`${kind.word}_name`] ?? row.name ?? '')

// pathOfRow is the path of an object in a list of a place with names.
export const pathOfRow = (kind: Kind, row: Row, names: Record<string, string>): string =>
  pathOf(kind.item, { ...names, ...(kind.owner ? { [kind.owner]: String(row[`${kind.owner}_name`] ?? names[kind.owner] ?? '') } : {}), [kind.word]: nameOf(kind, row) })

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
