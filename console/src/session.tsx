import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect } from 'react'
import { ApiError, call, dropHalf, keepHalf, whenUnauthorized } from './api/client'

// Session says who uses the console.
export interface Session {
  // state is open while no token exists, and everybody may do everything.
  state: 'open' | 'signed_in' | 'signed_out'
  actor?: string
  role?: 'admin' | 'editor' | 'viewer'
  ends?: string
  // provider is the identity provider with which people sign in, besides tokens.
  provider?: string
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

// Begun is a sign-in with the identity provider. It is in the storage of this tab, which no other port or site has.
interface Begun {
  state: string
  sign_in: string
  // place is where somebody was in the console.
  place: string
}

const begun = 'gatehouse.signin'

// beginSignIn leaves the page for that of the identity provider, which sends the browser back.
export async function beginSignIn(): Promise<void> {
  const page = new URL('./', document.baseURI).href
  const { url, ...kept } = (await call<{ url: string; state: string; sign_in: string }>('POST', '/ui/oidc', { body: { page } })).body
  sessionStorage.setItem(begun, JSON.stringify({ ...kept, place: location.hash } satisfies Begun))
  location.assign(url)
}

// arrived ends the sign-in of which the address has the answer, and returns why it has failed.
export const arrived = arrive()

async function arrive(): Promise<string> {
  const answer = new URLSearchParams(location.search)
  const state = answer.get('state')
  if (!state) return ''
  const text = sessionStorage.getItem(begun)
  sessionStorage.removeItem(begun)
  const kept = text ? (JSON.parse(text) as Begun) : undefined
  const own = kept?.state === state
  history.replaceState(null, '', location.pathname + (own ? kept.place : location.hash)) // the code leaves the address
  if (!own) return 'This answer of the identity provider is not to a sign-in that has begun in this tab. Sign in again.'
  const code = answer.get('code')
  if (!code) return `The identity provider has not signed you in (${/^\w{1,40}$/.exec(answer.get('error') ?? '')?.[0] ?? 'no code'}).`
  try {
    const body = { code, state, sign_in: kept.sign_in, iss: answer.get('iss') ?? '' }
    keepHalf((await call<{ header: string }>('POST', '/ui/oidc/session', { body })).body.header)
    return ''
  } catch (e) {
    return errorText(e)
  }
}

export const errorText = (e: unknown) => (e instanceof ApiError ? e.message : 'The control plane does not answer.')

// changing ends when a write that may change who has access has been followed by a sign-in.
let changing: Promise<unknown> = arrived

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
