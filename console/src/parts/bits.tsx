// Small parts that many pages have.
import { ActionIcon, Alert, Anchor, Badge, Button, CopyButton, Group, Skeleton, Stack, Text, Title, Tooltip } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState } from 'react'
import { ApiError } from '../api/client'
import { Icon } from './icon'

export function Page({ title, lead, aside, children, icon }: { title: ReactNode; lead?: ReactNode; aside?: ReactNode; children: ReactNode; icon?: string }) {
  useEffect(() => {
    if (typeof title === 'string') document.title = `${title} - Gatehouse`
  }, [title])
  return (
    <Stack gap="md">
      <Group justify="space-between" align="flex-start" wrap="wrap" gap="sm">
        <Group gap="sm" align="flex-start" wrap="nowrap" miw={0}>
          {icon && <span className="page-icon"><Icon name={icon} size={20} /></span>}
          <div className="page-title">
            <Title order={1}>{title}</Title>
            {lead && <Text c="dimmed" size="sm" mt={2}>{lead}</Text>}
          </div>
        </Group>
        {aside && <Group gap="xs">{aside}</Group>}
      </Group>
      {children}
    </Stack>
  )
}

// To leads to an object, by its path in the API.
export function To({ path, children, mono = true }: { path: string; children?: ReactNode; mono?: boolean }) {
  return (
    <Anchor component={Link} to={path} size="sm" className={mono ? 'mono' : undefined}>
      {children ?? path}
    </Anchor>
  )
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3600], ['minute', 60]]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const local = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

export function ago(at: Date, now = Date.now()): string {
  const seconds = (at.getTime() - now) / 1000
  for (const [unit, size] of units) if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit)
  return Math.abs(seconds) < 10 ? 'just now' : relative.format(Math.trunc(seconds), 'second')
}

// Time is a time in the zone of the reader, and in UTC for who points at it.
export function Time({ at, exact }: { at: string | null | undefined; exact?: boolean }) {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 30_000)
    return () => clearInterval(timer)
  }, [])
  if (!at) return <Text span c="dimmed" inherit>never</Text>
  const date = new Date(at)
  const utc = `${date.toISOString().replace('T', ' ').replace(/\.\d+Z/, '')} UTC`
  return (
    <Tooltip label={<>{local.format(date)}<br />{utc}</>}>
      <time dateTime={date.toISOString()} className="time">{exact ? local.format(date) : ago(date)}</time>
    </Tooltip>
  )
}

export function CopyButtonOf({ text, label, size = 'sm' }: { text: string; label: string; size?: string }) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : label}>
          <ActionIcon variant="subtle" color={copied ? 'teal' : 'gray'} size={size} onClick={copy} aria-label={label}>
            <Icon name={copied ? 'check' : 'copy'} size={15} />
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  )
}

// Code is text in lines, with a button that copies it.
export function CodeBlock({ text, label }: { text: string; label: string }) {
  return (
    <div className="code-block">
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      <CopyButtonOf text={text} label={`Copy ${label}`} />
    </div>
  )
}

export function Waiting({ rows = 3 }: { rows?: number }) {
  return (
    <Stack gap="xs" aria-busy="true">
      {Array.from({ length: rows }, (_, i) => <Skeleton key={i} height={22} radius="sm" width={`${90 - i * 12}%`} />)}
    </Stack>
  )
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const problem = error instanceof ApiError ? error.problem : undefined
  return (
    <Alert color="red" variant="light" icon={<Icon name="alert" />} title={problem?.title ?? 'The control plane does not answer'} role="alert">
      <Stack gap="xs">
        <Text size="sm">{problem?.detail ?? 'The page keeps what it has, and tries again when the connection is back.'}</Text>
        {problem?.errors?.map((e) => (
          <Text size="sm" key={e.field + e.message}><span className="mono">{e.field}</span>: {e.message}</Text>
        ))}
        {problem?.referenced_by && (
          <div>
            <Text size="sm" fw={600}>Used by</Text>
            {problem.referenced_by.map((path) => <div key={path}><To path={path} /></div>)}
          </div>
        )}
        {retry && <Group><Button size="xs" variant="default" onClick={retry}>Try again</Button></Group>}
      </Stack>
    </Alert>
  )
}

export function Empty({ title, children, action, icon = 'object' }: { title: string; children?: ReactNode; action?: ReactNode; icon?: string }) {
  return (
    <div className="empty">
      <span className="empty-icon"><Icon name={icon} size={26} /></span>
      <Text fw={600}>{title}</Text>
      {children && <Text c="dimmed" size="sm" maw={460} ta="center">{children}</Text>}
      {action && <Group mt="xs">{action}</Group>}
    </div>
  )
}

export function Tags({ tags }: { tags: unknown }) {
  if (!Array.isArray(tags) || tags.length === 0) return null
  return <>{tags.map((t) => <Badge key={String(t)} color="gray" size="sm" mr={4}>{String(t)}</Badge>)}</>
}

export function Section({ title, aside, children, id }: { title: string; aside?: ReactNode; children: ReactNode; id?: string }) {
  return (
    <section aria-label={title} id={id}>
      <Group justify="space-between" mb={6} gap="xs">
        <Title order={2}>{title}</Title>
        {aside}
      </Group>
      {children}
    </section>
  )
}
