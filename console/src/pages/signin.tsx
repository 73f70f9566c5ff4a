import { Alert, Button, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import { Icon } from '../parts/icon'
import { arrived, beginSignIn, errorText, sessionQuery, signIn } from '../session'

export function SignIn() {
  const queries = useQueryClient()
  const provider = useQuery(sessionQuery).data?.provider
  const [token, setToken] = useState('')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState('')
  useEffect(() => void arrived.then(setError), [])
  const attempt = async (what: string, f: () => Promise<void>) => {
    setBusy(what)
    setError('')
    try {
      await f()
    } catch (e) {
      setError(errorText(e))
      setBusy('')
    }
  }
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    await attempt('token', async () => {
      await signIn(token.trim())
      setToken('')
      await queries.invalidateQueries({ queryKey: ['session'] })
      setBusy('')
    })
  }
  return (
    <main className="signin">
      <Paper p="xl" w={400} maw="100%" component="form" onSubmit={(e) => void submit(e as unknown as FormEvent)} shadow="sm">
        <Stack>
          <div>
            <img src="./icon.svg" width="40" height="40" alt="" />
            <Title order={1} mt="sm">Sign in to Gatehouse</Title>
            {!provider && <Text size="sm" c="dimmed">With a token of the API. It is sent once, and not kept.</Text>}
          </div>
          {error && <Alert color="red" icon={<Icon name="alert" />} role="alert">{error}</Alert>}
          {provider && (
            <>
              <Button autoFocus data-autofocus loading={busy === 'provider'} disabled={!!busy} onClick={() => void attempt('provider', beginSignIn)}>Sign in with {provider}</Button>
              <Text size="sm" c="dimmed">Or with a token of the API. It is sent once, and not kept.</Text>
            </>
          )}
          <PasswordInput label="Token" value={token} onChange={(e) => setToken(e.currentTarget.value)} autoFocus={!provider} required autoComplete="off" data-autofocus={!provider || undefined} visibilityToggleButtonProps={{ 'aria-label': 'Show the token' }} />
          <Button type="submit" variant={provider ? 'default' : 'filled'} loading={busy === 'token'} disabled={!!busy || !token.trim()}>Sign in</Button>
          <Text size="xs" c="dimmed">To make a token: <span className="mono">gatehouse token create NAME --role viewer</span></Text>
        </Stack>
      </Paper>
    </main>
  )
}
