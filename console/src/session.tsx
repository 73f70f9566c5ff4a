import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect } from 'react'
import { call, dropHalf, keepHalf, whenUnauthorized } from './api/client'

// Session says who uses the console.
export interface Session {
  // state is open while no token exists, and everybody may do everything.
  state: 'open' | 'signed_in' | 'signed_out'
  actor?: string
  role?: 'admin' | 'editor' | 'viewer'
  ends?: string
  // elsewhere says where to change the configuration, if not here.
  elsewhere?: string
  version: string
}

const Context = createContext<Session>({ state: 'open', version: '' })

export const useSession = () => useContext(Context)

// useMay reports whether buttons that write are shown.
export function useMay(): { write: boolean; admin: boolean } {
  const { role, elsewhere } = useSession()
  const write = !elsewhere && role !== 'viewer'
  return { write, admin: write && role !== 'editor' }
}

// changing ends when a write that may change who has access has been followed by a sign-in.
let changing: Promise<unknown> = Promise.resolve()

export const sessionQuery = {
  queryKey: ['session'],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    await changing
    return (await call<Session>('GET', '/ui/session', { signal })).body
  },
  staleTime: Number.POSITIVE_INFINITY,
}

export async function signIn(token: string): Promise<void> {
  const answer = await call<{ header: string }>('POST', '/ui/session', { body: { token } })
  keepHalf(answer.body.header)
}

// withFirstToken makes a token. The first one closes the API, so the console signs in with it before it looks who it is:
// otherwise the page would be gone before it shows the token.
export function withFirstToken<T>(isFirst: boolean, make: Promise<T>, tokenOf: (made: T) => unknown): Promise<T> {
  if (!isFirst) return make
  const all = make.then(async (made) => {
    const token = tokenOf(made)
    if (typeof token === 'string') await signIn(token).catch(() => undefined)
    return made
  })
  changing = all.catch(() => undefined)
  return all
}

export function useSignOut() {
  const queries = useQueryClient()
  return async () => {
    await call('DELETE', '/ui/session').catch(() => undefined)
    dropHalf()
    queries.clear()
    await queries.invalidateQueries({ queryKey: ['session'] })
    location.reload()
  }
}

export function SessionGate({ waiting, signIn: page, children }: { waiting: ReactNode; signIn: ReactNode; children: ReactNode }) {
  const queries = useQueryClient()
  const { data } = useQuery({ ...sessionQuery, retry: true, retryDelay: 2000 })
  useEffect(() => {
    whenUnauthorized(() => void queries.invalidateQueries({ queryKey: ['session'] }))
  }, [queries])
  if (!data) return waiting
  if (data.state === 'signed_out') return page
  return <Context.Provider value={data}>{children}</Context.Provider>
}
