import createClient from 'openapi-fetch'
import type { components, paths } from './schema'

export type Schemas = components['schemas']
export type Problem = Schemas['Problem']

// base is the address of the API, wherever the console is served.
export const base = new URL('..', document.baseURI.replace(/#.*/, ''))

// The half of a session that the page has; the other one is a cookie that no script can read (ADR 0131).
const half = 'gatehouse.session'
const sessionHeader = 'Gatehouse-Session'

export const keepHalf = (text: string) => localStorage.setItem(half, text)
export const dropHalf = () => localStorage.removeItem(half)

// send is fetch for a path of the API, with the session.
export function send(path: string | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  const text = localStorage.getItem(half)
  if (text) headers.set(sessionHeader, text)
  return fetch(typeof path === 'string' ? addressOf(path) : path, { ...init, headers, credentials: 'same-origin', cache: 'no-store' })
}

export const addressOf = (path: string) => new URL(path.replace(/^\//, ''), base)

// api has the calls of the API with their types, so that a change of the contract breaks the build.
export const api = createClient<paths>({ baseUrl: base.href.replace(/\/$/, ''), fetch: (request: Request) => sendRequest(request) })

function sendRequest(request: Request): Promise<Response> {
  const text = localStorage.getItem(half)
  if (text) request.headers.set(sessionHeader, text)
  return fetch(request)
}

// ApiError is an answer with a problem.
export class ApiError extends Error {
  readonly problem: Problem
  readonly status: number

  constructor(problem: Problem) {
    super(problem.detail ?? problem.title)
    this.problem = problem
    this.status = problem.status
  }
}

// onUnauthorized is told that a call needs a token, as after a session has ended.
let onUnauthorized = () => {}
export const whenUnauthorized = (f: () => void) => {
  onUnauthorized = f
}

// Answer is what a call returned.
export interface Answer<T> {
  status: number
  body: T
  etag: string
  revision: number
  warnings: string[]
  next: string
}

export type Query = Record<string, string | number | boolean | string[] | undefined>

export function withQuery(path: string, query: Query = {}): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue
    for (const v of Array.isArray(value) ? value : [value]) params.append(name, String(v))
  }
  const text = params.toString()
  return text ? `${path}?${text}` : path
}

export interface Options {
  query?: Query
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

// call makes a call whose path is known only at run time, such as one of a kind that the OpenAPI document has.
export async function call<T>(method: string, path: string, o: Options = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: 'application/json', ...o.headers }
  let body: BodyInit | undefined
  if (typeof o.body === 'string') body = o.body
  else if (o.body !== undefined) {
    body = JSON.stringify(o.body)
    headers['Content-Type'] = 'application/json'
  }
  const res = await send(withQuery(path, o.query), { method, headers, body, signal: o.signal })
  return answerOf<T>(res)
}

export async function answerOf<T>(res: Response): Promise<Answer<T>> {
  const text = await res.text()
  let body: unknown = text
  if (/json/.test(res.headers.get('Content-Type') ?? '')) body = text ? JSON.parse(text) : undefined
  if (!res.ok) throw problemOf(res, body)
  return {
    status: res.status,
    body: body as T,
    etag: res.headers.get('ETag') ?? '',
    revision: Number(res.headers.get('Gatehouse-Revision') ?? 0),
    warnings: (res.headers.get('Gatehouse-Warning') ?? '').split(/,\s(?=\S)/).filter(Boolean),
    next: /<([^>]+)>;\s*rel="next"/.exec(res.headers.get('Link') ?? '')?.[1] ?? '',
  }
}

function problemOf(res: Response, body: unknown): ApiError {
  if (res.status === 401) onUnauthorized()
  if (typeof body === 'object' && body !== null && 'title' in body) return new ApiError(body as Problem)
  return new ApiError({
    type: 'urn:gatehouse:problem:unavailable',
    code: 'unavailable',
    title: `The answer has the status ${res.status}`,
    detail: 'Something between the browser and the control plane answered.',
    status: res.status,
    instance: new URL(res.url || base).pathname,
  })
}

// typed returns the body of a call of api, or throws its problem.
export function typed<T>(result: { data?: T; error?: unknown; response: Response }): T {
  if (result.error !== undefined || !result.response.ok) throw problemOf(result.response, result.error)
  return result.data as T
}

// rowsOf returns the list that an answer has under its only key, which contains the schema word.
export function rowsOf<T>(body: { data: Record<string, unknown> }): T[] {
  return (Object.values(body.data).find(Array.isArray) ?? []) as T[]
}
