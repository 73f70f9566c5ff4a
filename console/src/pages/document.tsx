import { Alert, Button, Checkbox, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { call, type Problem } from '../api/client'
import { documentQuery } from '../api/state'
import { Failure, Page, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'
import { marksOf } from '../parts/marks'
import { type Write, WriteDialog } from '../parts/write'
import { useMay, useSession } from '../session'

const Editor = lazy(() => import('../parts/editor').then((m) => ({ default: m.Editor })))

// yaml is how a document is sent.
export const yaml = 'application/yaml'

// DocumentPage has the whole configuration as one text, which is edited, tried and applied.
export function DocumentPage() {
  const may = useMay()
  const { elsewhere } = useSession()
  const curl = useCurl()
  const stored = useQuery(documentQuery)
  // read is the document that the edit began with; it names its revision.
  const [read, setRead] = useState<string>()
  const [text, setText] = useState('')
  const [prune, setPrune] = useState(false)
  const [problem, setProblem] = useState<Problem>()
  const [write, setWrite] = useState<Write | null>(null)
  const dirty = read !== undefined && text !== read
  const take = (document: string) => {
    setRead(document)
    setText(document)
    setProblem(undefined)
  }
  useEffect(() => {
    if (stored.data !== undefined && !dirty && !write) take(stored.data)
  }, [stored.data, dirty, write])
  useEffect(() => {
    const ask = (e: BeforeUnloadEvent) => e.preventDefault()
    if (dirty) addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [dirty])
  const marks = useMemo(() => marksOf(problem), [problem])
  const review = (force = false) => {
    if (!may.write) return
    setProblem(undefined)
    setWrite({
      title: 'Apply the document', verb: 'Apply', method: 'PUT', path: '/config', body: text, type: yaml, file: 'gateway.yaml', danger: prune || force,
      query: { prune: prune || undefined, force: force || undefined },
    })
  }
  const done = async () => {
    take((await call<string>('GET', '/config', { headers: { Accept: yaml } })).body)
    setPrune(false)
  }
  return (
    <Page
      title="Document" icon="document" lead="The whole configuration as one text. Applying it changes everything or nothing."
      aside={
        <>
          <CopyCurl line={curl('GET', '/config')} />
          {may.write && dirty && <Button variant="default" onClick={() => take(stored.data ?? read ?? '')}>Discard the edit</Button>}
          {may.write && <Button onClick={() => review()} disabled={!dirty && !prune}>Review the change</Button>}
        </>
      }
    >
      {elsewhere && <Alert color="blue" icon={<Icon name="info" />} title="Changed elsewhere">{elsewhere}</Alert>}
      {stored.error && read === undefined ? <Failure error={stored.error} retry={() => void stored.refetch()} /> : null}
      {dirty && stored.data !== read && (
        <Alert color="blue" icon={<Icon name="info" />} title="The configuration has changed since you began">
          Your edit stays as it is. It is refused only if it changes an object that somebody else has changed.
        </Alert>
      )}
      {problem && <Refused problem={problem} overwrite={() => review(true)} again={() => take(stored.data ?? '')} />}
      {read === undefined && !stored.error ? <Waiting rows={8} /> : null}
      {read !== undefined && (
        <Suspense fallback={<Waiting rows={8} />}>
          <Editor value={text} onChange={may.write ? setText : undefined} label="The document, in YAML" marks={marks} submit={review} />
        </Suspense>
      )}
      {may.write && (
        <Group justify="space-between">
          <Checkbox label="Delete the objects that the document does not name" checked={prune} onChange={(e) => setPrune(e.currentTarget.checked)} />
          <Text size="sm" c="dimmed">Ctrl-Enter reviews the change, Ctrl-F searches, Tab leaves the editor.</Text>
        </Group>
      )}
      <WriteDialog write={write} close={() => setWrite(null)} invalid={setProblem} done={() => void done()} />
    </Page>
  )
}

// Refused says why a document was not applied. A conflict is with what others have changed meanwhile.
function Refused({ problem, overwrite, again }: { problem: Problem; overwrite: () => void; again: () => void }) {
  if (problem.status !== 409 || !problem.errors) {
    return (
      <Alert color="red" icon={<Icon name="alert" />} title={problem.title} role="alert">
        <Text size="sm">{problem.detail}</Text>
        {problem.errors?.map((e) => <Text size="sm" key={e.field + e.message} className="mono wrap">{e.field}: {e.message}</Text>)}
      </Alert>
    )
  }
  return (
    <Alert color="yellow" icon={<Icon name="alert" />} title="Somebody has changed what the document changes" role="alert">
      <Text size="sm" mb="xs">Nothing was stored, so nothing is lost on their side.</Text>
      {problem.errors.map((e) => {
        const revision = /revision (\d+)/.exec(e.message)?.[1]
        return <Text size="sm" key={e.field + e.message} className="wrap"><To path={e.field} /> {e.message} {revision && <To path={`/history/${revision}`}>What it changed</To>}</Text>
      })}
      <Group mt="sm">
        <Button variant="default" size="xs" onClick={again}>Discard the edit, and read again</Button>
        <Button variant="default" size="xs" className="danger" onClick={overwrite}>Review, and overwrite them</Button>
      </Group>
    </Alert>
  )
}
