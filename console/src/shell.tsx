import { ActionIcon, AppShell, Burger, Group, Kbd, Menu, NavLink, ScrollArea, Text, Tooltip, UnstyledButton, useComputedColorScheme, useMantineColorScheme, VisuallyHidden } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useLocation, useRouterState } from '@tanstack/react-router'
import { Suspense, useEffect } from 'react'
import { addressOf } from './api/client'
import { follow, useFeed } from './api/events'
import { capital, useKinds } from './api/kinds'
import { useStatus } from './api/state'
import { Waiting } from './parts/bits'
import { Icon } from './parts/icon'
import { Palette } from './parts/palette'
import { useSession, useSignOut } from './session'

// first are the kinds in the order of a request; others follow.
const first = ['service', 'upstream', 'filter', 'proxy', 'globalconfig', 'secret', 'keyset']

const answers = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/map', label: 'Map', icon: 'map' },
  { to: '/explain', label: 'Explain', icon: 'explain' },
  { to: '/limits', label: 'Limits', icon: 'limits' },
]
const operation = [
  { to: '/envoys', label: 'Envoys', icon: 'envoys' },
  { to: '/events', label: 'Events', icon: 'events' },
  { to: '/history', label: 'History', icon: 'history' },
]

export function Shell() {
  const [open, { toggle, close }] = useDisclosure()
  const [going, going_] = useDisclosure()
  const queries = useQueryClient()
  const { pathname } = useLocation()
  const shown = useRouterState({ select: (s) => s.resolvedLocation?.pathname })
  useEffect(() => {
    const stop = new AbortController()
    void follow(queries, stop.signal)
    return () => stop.abort()
  }, [queries])
  useEffect(() => {
    close()
  }, [pathname, close])
  return (
    <AppShell header={{ height: 52 }} navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: !open } }} padding="md">
      <a className="skip" href={`#${pathname}`} onClick={(e) => { e.preventDefault(); document.querySelector<HTMLElement>('main')?.focus() }}>Skip to the content</a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={open} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Link to="/" className="brand"><img src="./icon.svg" width="26" height="26" alt="" />Gatehouse</Link>
          </Group>
          <UnstyledButton className="goto" onClick={going_.open} visibleFrom="sm" aria-label="Go to a page or an object">
            <Icon name="explain" size={15} /><span className="grow">Go to</span><Kbd size="xs">Ctrl K</Kbd>
          </UnstyledButton>
          <Group gap="xs" wrap="nowrap">
            <Connection />
            <Scheme />
            <User />
          </Group>
        </Group>
      </AppShell.Header>
      <Suspense><Palette opened={going} open={going_.open} close={going_.close} /></Suspense>
      <AppShell.Navbar aria-label="Pages"><Suspense><Nav /></Suspense></AppShell.Navbar>
      <AppShell.Main tabIndex={-1}>
        <div className="main" data-place={shown}>
          <Suspense fallback={<Waiting rows={6} />}><Outlet /></Suspense>
        </div>
      </AppShell.Main>
    </AppShell>
  )
}

function Nav() {
  const { pathname } = useLocation()
  const kinds = useKinds().all.filter((k) => k.owner === '' && k.word !== 'token')
  const order = (word: string) => (first.indexOf(word) + 1) || first.length + 1
  const objects = kinds
    .sort((a, b) => order(a.word) - order(b.word))
    .map((k) => ({ to: k.list, label: capital(k.plural), icon: k.word }))
  objects.splice(1, 0, { to: '/route', label: 'Routes', icon: 'route' })
  const groups = [
    { title: '', items: answers },
    { title: 'Configuration', items: objects },
    { title: 'Operation', items: [{ to: '/document', label: 'Document', icon: 'document' }, ...operation, { to: '/token', label: 'Tokens', icon: 'token' }] },
  ]
  return (
    <ScrollArea type="auto" p={8}>
      {groups.map((g) => (
        <div key={g.title}>
          {g.title && <div className="nav-title">{g.title}</div>}
          {g.items.map((i) => {
            const active = i.to === '/' ? pathname === '/' : pathname === i.to || pathname.startsWith(`${i.to}/`)
            return <NavLink key={i.to} component={Link} to={i.to} label={i.label} active={active} aria-current={active ? 'page' : undefined} leftSection={<Icon name={i.icon} />} py={6} className="nav-link" />
          })}
        </div>
      ))}
      <div className="nav-title">Help</div>
      <NavLink href={addressOf('/docs/').href} target="_blank" label="Documentation" leftSection={<Icon name="book" />} py={6} className="nav-link" />
    </ScrollArea>
  )
}

// Connection says whether the page shows what is true now.
function Connection() {
  const { state } = useFeed()
  const { data } = useStatus()
  const text = { live: 'Live', lost: 'Connection lost', connecting: 'Connecting' }[state]
  const hint = {
    live: 'Every page changes by itself.',
    lost: 'The page shows what was true before, and connects again by itself.',
    connecting: 'The stream of events begins.',
  }[state]
  return (
    <Tooltip label={hint}>
      <Group gap={7} wrap="nowrap" role="status" aria-live="polite" className="connection">
        <span className="pulse" data-state={state} />
        <Text size="sm" c={state === 'lost' ? 'red' : undefined} fw={state === 'lost' ? 600 : 400}>{text}</Text>
        {state === 'live' && data && <Text size="sm" c="dimmed" visibleFrom="xs" className="time">revision {data.revision}</Text>}
      </Group>
    </Tooltip>
  )
}

function Scheme() {
  const { setColorScheme } = useMantineColorScheme()
  const scheme = useComputedColorScheme('light')
  const other = scheme === 'dark' ? 'light' : 'dark'
  return (
    <Tooltip label={`Use the ${other} scheme`}>
      <ActionIcon variant="subtle" color="gray" size="lg" onClick={() => setColorScheme(other)} aria-label={`Use the ${other} scheme`}>
        <Icon name={scheme === 'dark' ? 'sun' : 'moon'} />
      </ActionIcon>
    </Tooltip>
  )
}

function User() {
  const session = useSession()
  const signOut = useSignOut()
  if (session.state !== 'signed_in') return <VisuallyHidden>No sign-in is needed</VisuallyHidden>
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <UnstyledButton className="user" aria-label={`Signed in as ${session.actor}`}>
          <Icon name="token" size={16} /><span className="user-name">{session.actor}</span><Kbd size="xs">{session.role}</Kbd>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Icon name="out" size={16} />} onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
