// Every write goes through here: what it would change, then the write, then where it is live.
import { Alert, Button, Group, Loader, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { type Answer, ApiError, call, type Problem, type Query } from '../api/client'
import { type Change, statusQuery } from '../api/state'
import { Failure, To } from './bits'
import { ChangeList } from './changes'
import { CopyCurl, useCurl } from './curl'
import { Icon } from './icon'
import { useSession, withFirstToken } from '../session'

export interface Write {
  title: string
  verb: string
  method: string
  path: string
  query?: Query
  body?: unknown
  // type is that of a body that is not JSON, and file its name in a line for a shell.
  type?: string
  file?: string
  etag?: string
  danger?: boolean
  // noDryRun is for calls that have none, such as those of tokens.
  noDryRun?: boolean
}

interface Lag {
  proxy?: string
  envoy?: string
  reason: string
  message: string
}

interface Done {
  answer: Answer<{ data?: { lagging?: Lag[]; warnings?: string[] } } & Record<string, unknown>>
  took: number
  live: number
  envoys: number
}

interface Props {
  write: Write | null
  close: () => void
  // done is called when the dialog is left after the write.
  done?: (answer: Done['answer']) => void
  // invalid takes a problem whose fields a form shows.
  invalid?: (problem: Problem) => void
  // extra is what the answer has for this once, such as a new token.
  extra?: (answer: Done['answer']) => ReactNode
}

const headersOf = (w: Write): Record<string, string> => ({ ...(w.etag ? { 'If-Match': w.etag } : {}), ...(w.type ? { 'Content-Type': w.type } : {}) })

export function WriteDialog({ write, close, done, invalid, extra }: Props) {
  const [preview, setPreview] = useState<{ changes: Change[]; warnings: string[] }>()
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const [result, setResult] = useState<Done>()
  const [message, setMessage] = useState('')
  const queries = useQueryClient()
  const { state } = useSession()
  const told = useRef(invalid)
  told.current = invalid
  const shut = useRef(close)
  shut.current = close

  useEffect(() => {
    setPreview(undefined)
    setError(undefined)
    setResult(undefined)
    setMessage('')
    if (!write || write.noDryRun) return
    const stop = new AbortController()
    call<{ data: { changes?: Change[]; warnings?: string[] } }>(write.method, write.path, { query: { ...write.query, dry_run: true }, body: write.body, headers: headersOf(write), signal: stop.signal })
      .then((a) => setPreview({ changes: a.body.data.changes ?? [], warnings: [...a.warnings, ...(a.body.data.warnings ?? [])] }))
      .catch((e: unknown) => {
        if (stop.signal.aborted) return
        if (e instanceof ApiError && e.problem.errors && told.current) {
          told.current(e.problem)
          shut.current()
        } else setError(e)
      })
    return () => stop.abort()
  }, [write])

  const run = async () => {
    if (!write) return
    setBusy(true)
    setError(undefined)
    const began = performance.now()
    try {
      const query: Query = { ...write.query, ...(write.noDryRun ? {} : { wait: 'applied', timeout: '10s', message: message || undefined }) }
      const first = state === 'open' && write.method === 'POST' && write.path === '/token'
      const answer = await withFirstToken(
        first,
        call<Done['answer']['body']>(write.method, write.path, { query, body: write.body, headers: headersOf(write) }),
        (a) => a.body.token,
      )
      if (first) await queries.invalidateQueries({ queryKey: ['session'] })
      const took = Math.round(performance.now() - began)
      await queries.invalidateQueries({ queryKey: ['live'] })
      void queries.invalidateQueries({ queryKey: ['stored'] })
      const status = await queries.fetchQuery({ ...statusQuery, staleTime: 0 }).catch(() => undefined)
      const envoys = status?.proxies.flatMap((p) => p.envoys) ?? []
      setResult({ answer, took, envoys: envoys.length, live: envoys.filter((e) => e.applied_revision >= answer.revision).length })
    } catch (e) {
      if (e instanceof ApiError && e.problem.errors && told.current) {
        told.current(e.problem)
        shut.current()
      } else setError(e)
    } finally {
      setBusy(false)
    }
  }
  const leave = () => {
    const r = result
    close()
    if (r) done?.(r.answer)
  }
  return (
    <Modal opened={write !== null} onClose={leave} title={write?.title} size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      {write && (
        <Stack>
          {error ? <Refused error={error} /> : null}
          {!result && !error && !write.noDryRun && !preview && <Group><Loader size="sm" /><Text size="sm">Asking what would change</Text></Group>}
          {!result && preview && (
            <>
              <ChangeList changes={preview.changes} />
              <Warnings list={preview.warnings} />
              <TextInput label="Why" description="One line for the history" value={message} onChange={(e) => setMessage(e.currentTarget.value)} maxLength={500} />
            </>
          )}
          {result && <Outcome done={result} />}
          {result && extra?.(result.answer)}
          <Group justify="space-between">
            <CurlOf write={write} />
            <Group>
              {result ? (
                <Button onClick={leave} data-autofocus>Close</Button>
              ) : (
                <>
                  <Button variant="default" onClick={leave}>Cancel</Button>
                  <Button color={write.danger ? 'red' : undefined} loading={busy} disabled={!write.noDryRun && !preview} onClick={() => void run()}>{write.verb}</Button>
                </>
              )}
            </Group>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}

function CurlOf({ write }: { write: Write }) {
  const curl = useCurl()
  return <CopyCurl line={curl(write.method, write.path, { query: { ...write.query, ...(write.noDryRun ? {} : { wait: 'applied' }) }, body: write.body, type: write.type, file: write.file, etag: write.etag })} />
}

function Refused({ error }: { error: unknown }) {
  if (error instanceof ApiError && error.status === 412) {
    return (
      <Alert color="yellow" icon={<Icon name="alert" />} title="Somebody has changed it meanwhile" role="alert">
        <Text size="sm">Your change was not stored, so nothing is lost on their side. Close this, look at what they changed, and repeat your change on top of it.</Text>
      </Alert>
    )
  }
  return <Failure error={error} />
}

export function Warnings({ list }: { list: string[] }) {
  if (list.length === 0) return null
  return <Alert color="yellow" icon={<Icon name="alert" />} title="It works, but">{list.map((w) => <Text size="sm" key={w}>{w}</Text>)}</Alert>
}

function Outcome({ done }: { done: Done }) {
  const lagging = done.answer.body?.data?.lagging ?? []
  const unreachable = lagging.filter((l) => l.reason === 'not_connected')
  const rest = lagging.filter((l) => l.reason !== 'not_connected')
  return (
    <Stack gap="sm" role="status">
      {lagging.length === 0 && done.answer.revision > 0 && done.envoys > 0 && (
        <Alert color="teal" icon={<Icon name="check" />} title={`Live on ${done.live} of ${done.envoys} ${done.envoys === 1 ? 'Envoy' : 'Envoys'} after ${done.took} ms`}>
          Revision {done.answer.revision}. It applies from the next request on.
        </Alert>
      )}
      {lagging.length === 0 && (done.answer.revision === 0 || done.envoys === 0) && <Alert color="teal" icon={<Icon name="check" />} title="Stored">{done.answer.revision > 0 ? `Revision ${done.answer.revision}. No Envoy is connected.` : ''}</Alert>}
      {unreachable.length > 0 && (
        <Alert color="blue" icon={<Icon name="info" />} title="Stored">
          No Envoy of {unreachable.map((l) => l.proxy).join(', ')} is connected. It is live as soon as one is.
        </Alert>
      )}
      {rest.length > 0 && (
        <Alert color={rest.some((l) => l.reason === 'refused') ? 'red' : 'yellow'} icon={<Icon name="alert" />} title="Stored, and not live everywhere">
          {rest.map((l) => (
            <div key={`${l.proxy}${l.envoy}${l.reason}`}>
              <Text size="sm">{l.proxy && <To path={`/proxy/${l.proxy}`}>{l.proxy}</To>} {l.envoy}: {l.reason}</Text>
              <Text size="sm" className="wrap mono">{l.message}</Text>
            </div>
          ))}
        </Alert>
      )}
      <Warnings list={[...done.answer.warnings, ...(done.answer.body?.data?.warnings ?? [])]} />
    </Stack>
  )
}
