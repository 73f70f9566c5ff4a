// A draft: a change that is explained, and not stored.
import { Accordion, Alert, Badge, Button, Group, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { ApiError, type Problem, type Schemas } from '../api/client'
import { documentQuery } from '../api/state'
import { Failure, Waiting } from './bits'
import { Icon } from './icon'
import { marksOf } from './marks'

const Editor = lazy(() => import('./editor').then((m) => ({ default: m.Editor })))

type Explanation = Schemas['Explanation']

// partOf cuts one object out of a document: the lines of a list that belong to its name.
export function partOf(document: string, section: string, field: string, name: string): string {
  const lines = document.split('\n')
  const out: string[] = []
  let inside = false
  let taken = false
  for (const line of lines) {
    if (/^\S/.test(line) && !line.startsWith('-')) inside = line === `${section}:`
    else if (inside) {
      if (line.startsWith('- ')) taken = line === `- ${field}: ${name}` || line === `- ${field}: "${name}"`
      if (taken) out.push(line)
    }
  }
  return out.length > 0 ? `version: 1\n${section}:\n${out.join('\n')}\n` : ''
}

export function DraftEditor({ service, busy, error, explain, forget }: { service: string; busy: boolean; error: unknown; explain: (text: string) => void; forget: () => void }) {
  const queries = useQueryClient()
  const [text, setText] = useState('')
  const problem: Problem | undefined = error instanceof ApiError ? error.problem : undefined
  const take = async () => {
    const document = await queries.fetchQuery(documentQuery)
    setText(partOf(document, 'services', 'service_name', service))
  }
  return (
    <Accordion variant="separated" className="cards" onChange={(v) => v === null && forget()}>
      <Accordion.Item value="draft">
        <Accordion.Control>What would a change do to this request?</Accordion.Control>
        <Accordion.Panel>
          <Stack gap="sm">
            <Text size="sm">A part of a document: objects that it does not name stay as they are. It is tried as a dry run, and nothing is stored.</Text>
            <Suspense fallback={<Waiting rows={4} />}>
              <Editor short value={text} onChange={setText} label="The draft, in YAML" marks={marksOf(problem)} submit={() => explain(text)} />
            </Suspense>
            {error ? <Failure error={error} /> : null}
            <Group>
              <Button onClick={() => explain(text)} loading={busy} disabled={text.trim() === ''}>Explain with the draft</Button>
              {service && <Button variant="default" onClick={() => void take()}>Begin with service {service}</Button>}
            </Group>
          </Stack>
        </Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  )
}

// outcome is what a client gets, without how it came to that.
const outcome = (e: Explanation) => JSON.stringify([e.code, e.status, e.message, e.location, e.forward?.host, e.forward?.path, e.forward?.clusters.map((c) => c.endpoints.map((p) => [p.upstream, p.percent]))])

// Comparison says what a draft changes for a request.
export function Comparison({ now, draft }: { now: Explanation[]; draft: Explanation }) {
  const differ = now.filter((e) => outcome(e) !== outcome(draft))
  if (differ.length === 0) {
    const steps = now.some((e) => JSON.stringify([e.steps, e.filters]) !== JSON.stringify([draft.steps, draft.filters]))
    return <Alert color="blue" icon={<Icon name="info" />} role="status" title="With the draft, the client gets the same">{steps ? 'The way to it is another: see what is marked below.' : 'Nothing on the way changes either.'}</Alert>
  }
  return (
    <Alert color="yellow" icon={<Icon name="alert" />} role="status" title="With the draft, the client gets something else">
      {differ.map((e, i) => <Text size="sm" key={i}><Badge color="gray" mr={6}>now</Badge><del>{e.status ? `${e.status}: ` : ''}{e.message}</del></Text>)}
      <Text size="sm" mt={4}><Badge color="teal" mr={6}>draft</Badge><ins>{draft.status ? `${draft.status}: ` : ''}{draft.message}</ins></Text>
    </Alert>
  )
}
