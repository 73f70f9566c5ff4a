import { Alert, Button, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiError } from '../api/client'
import { Icon } from '../parts/icon'
import { signIn } from '../session'

export function SignIn() {
  const queries = useQueryClient()
  const [token, setToken] = useState('')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    setBusy(true)
    setError('')
    try {
      await signIn(token.trim())
      setToken('')
      await queries.invalidateQueries({ queryKey: ['session'] })
    } catch (e) {
      setError(e instanceof ApiError ? e.message : 'The control plane does not answer.')
    } finally {
      setBusy(false)
    }
  }
  return (
    <main className="signin">
      <Paper p="xl" w={400} maw="100%" component="form" onSubmit={(e) => void submit(e as unknown as FormEvent)} shadow="sm">
        <Stack>
          <div>
            <img src="./icon.svg" width="40" height="40" alt="" />
            <Title order={1} mt="sm">Sign in to Gatehouse</Title>
            <Text size="sm" c="dimmed">With a token of the API. It is sent once, and not kept.</Text>
          </div>
          {error && <Alert color="red" icon={<Icon name="alert" />} role="alert">{error}</Alert>}
          <PasswordInput label="Token" value={token} onChange={(e) => setToken(e.currentTarget.value)} autoFocus required autoComplete="off" data-autofocus visibilityToggleButtonProps={{ 'aria-label': 'Show the token' }} />
          <Button type="submit" loading={busy} disabled={!token.trim()}>Sign in</Button>
          <Text size="xs" c="dimmed">To make a token: <span className="mono">gatehouse token create NAME --role viewer</span></Text>
        </Stack>
      </Paper>
    </main>
  )
}
