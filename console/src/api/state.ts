// What several pages read.
import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, call, rowsOf, type Schemas, typed, withQuery } from './client'
import type { Config } from './map'
import type { Row } from './kinds'

export type Status = Schemas['StatusEntry']
export type Envoy = Schemas['Envoy']
export type ObjectStatus = Schemas['ObjectStatus']
export type Revision = Schemas['RevisionEntry']
export type Change = Schemas['Change']

export const statusQuery = queryOptions({
  queryKey: ['live', 'status'],
  queryFn: async ({ signal }) => typed(await api.GET('/status', { signal })).data.core_db_status?.[0] as Status,
})

export const useStatus = () => useQuery(statusQuery)

export const revisionsQuery = (query: { limit?: number; by?: string; kind?: string; object?: string; since?: string }) =>
  queryOptions({
    queryKey: ['stored', 'revisions', query],
    queryFn: async ({ signal }) => rowsOf<Revision>(typed(await api.GET('/revision', { params: { query }, signal }))),
  })

// documentQuery reads the whole configuration as text.
export const documentQuery = queryOptions({
  queryKey: ['stored', 'document'],
  queryFn: async ({ signal }) => (await call<string>('GET', '/config', { headers: { Accept: 'application/yaml' }, signal })).body,
})

// configQuery reads the whole configuration.
export const configQuery = queryOptions({
  queryKey: ['stored', 'config'],
  queryFn: async ({ signal }) => (await call<Config>('GET', '/config', { signal })).body,
})

// Page is a whole list, or as much of it as is shown.
export interface List {
  rows: Row[]
  more: boolean
}

const pages = 10

// listQuery reads a list with its status, page after page.
export const listQuery = (path: string, query: Record<string, string | boolean> = {}) =>
  queryOptions({
    queryKey: ['live', 'list', path, query],
    queryFn: async ({ signal }): Promise<List> => {
      const rows: Row[] = []
      let next = withQuery(path, { limit: 1000, ...query })
      for (let i = 0; next && i < pages; i++) {
        const answer = await call<{ data: Record<string, unknown> }>('GET', next, { signal })
        rows.push(...rowsOf<Row>(answer.body))
        next = answer.next
      }
      return { rows, more: next !== '' }
    },
  })

export interface Loaded {
  row: Row
  etag: string
}

export const objectQuery = (path: string) =>
  queryOptions({
    queryKey: ['live', 'object', path],
    queryFn: async ({ signal }): Promise<Loaded> => {
      const answer = await call<{ data: Record<string, unknown> }>('GET', path, { signal })
      return { row: rowsOf<Row>(answer.body)[0], etag: answer.etag }
    },
  })
