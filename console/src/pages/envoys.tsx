import { Accordion, Alert, Badge, Group, Select, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call, rowsOf } from '../api/client'
import { type Envoy, useStatus } from '../api/state'
import { CodeBlock, Empty, Failure, Page, Section, Time, To, Waiting } from '../parts/bits'
import { CopyCurl, useCurl } from '../parts/curl'
import { Icon } from '../parts/icon'
import { envoyColor } from './overview'

export function EnvoysPage() {
  const { data, error, refetch } = useStatus()
  const curl = useCurl()
  if (!data) return <Page title="Envoys" icon="envoys">{error ? <Failure error={error} retry={() => void refetch()} /> : <Waiting rows={6} />}</Page>
  return (
    <Page title="Envoys" icon="envoys" lead="What each connected Envoy has, has refused, and waits for." aside={<CopyCurl line={curl('GET', '/status')} />}>
      {data.held && <Alert color="red" icon={<Icon name="alert" />} title="Envoys are held">{data.held}</Alert>}
      {data.waiting_nodes.length > 0 && (
        <Section title="Envoys without a proxy">
          <div className="table-wrap">
            <Table>
              <Table.Tbody>
                {data.waiting_nodes.map((n) => (
                  <Table.Tr key={n.address}><Table.Td className="mono">{n.node}</Table.Td><Table.Td className="mono">{n.address}</Table.Td><Table.Td>{n.create}</Table.Td></Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </div>
        </Section>
      )}
      {data.proxies.length === 0 && <Empty icon="proxy" title="There is no proxy">An Envoy belongs to a proxy, by its name.</Empty>}
      {data.proxies.map((p) => (
        <Section key={p.proxy} title={`Proxy ${p.proxy}`} aside={<To path={`/proxy/${p.proxy}`} mono={false}>Settings</To>}>
          {p.envoys.length === 0 ? (
            <Empty icon="envoys" title="No Envoy is connected">Start one with this name: <span className="mono">gatehouse envoy --proxy {p.proxy}</span></Empty>
          ) : (
            <Accordion variant="separated" multiple className="cards" defaultValue={p.envoys.length === 1 ? [p.envoys[0].address] : []}>
              {p.envoys.map((e) => <OneEnvoy key={e.address} envoy={e} stored={data.revision} />)}
            </Accordion>
          )}
          <Resources proxy={p.proxy} />
        </Section>
      ))}
      {data.replicas && (
        <Section title="Other control planes">
          <div className="table-wrap">
            <Table>
              <Table.Thead><Table.Tr><Table.Th>Replica</Table.Th><Table.Th>State</Table.Th><Table.Th>Envoys get</Table.Th><Table.Th>Envoys</Table.Th><Table.Th>Heard</Table.Th></Table.Tr></Table.Thead>
              <Table.Tbody>
                {data.replicas.map((r) => (
                  <Table.Tr key={r.replica}><Table.Td>{r.replica}</Table.Td><Table.Td><Badge color={r.state === 'heard' ? 'teal' : 'yellow'}>{r.state}</Badge></Table.Td><Table.Td className="time">{r.built_revision}</Table.Td><Table.Td className="time">{r.envoys + (r.more_envoys ?? 0)}</Table.Td><Table.Td><Time at={r.heard_ts} /></Table.Td></Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </div>
        </Section>
      )}
    </Page>
  )
}

function OneEnvoy({ envoy: e, stored }: { envoy: Envoy; stored: number }) {
  return (
    <Accordion.Item value={e.address}>
      <Accordion.Control>
        <Group gap="md">
          <Badge color={envoyColor[e.state]}>{e.state}</Badge>
          <span className="mono">{e.instance || e.address}</span>
          <Text size="sm" c="dimmed">Envoy {e.version}</Text>
          <Text size="sm" className="time">revision {e.applied_revision}{e.applied_revision < stored ? ` of ${stored}` : ''}</Text>
          <Text size="sm" c="dimmed">connected <Time at={e.connected_ts} /></Text>
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">
          {e.refused.map((r) => (
            <Alert key={r.type + r.resource} color="red" icon={<Icon name="alert" />} title={`Refused ${r.type} ${r.resource}`}>
              <Text size="sm" className="wrap mono">{r.message}</Text>
              {r.objects.map((o) => <div key={o}><To path={o} /></div>)}
            </Alert>
          ))}
          {e.waiting.map((w) => (
            <Alert key={w.object} color="blue" icon={<Icon name="info" />} title={<>Waits with <To path={w.object} /></>}>
              for {w.for.flatMap((f) => f.objects).map((o) => <span key={o}><To path={o} /> </span>)} since <Time at={w.since} />{w.until && <>, until <Time at={w.until} exact /></>}
            </Alert>
          ))}
          {(e.replica || e.identity) && <Text size="sm" c="dimmed">{[e.replica && `connected to ${e.replica}`, e.identity && `proved: ${e.identity}`].filter(Boolean).join(', ')}</Text>}
          {e.types.length > 0 && (
            <div className="table-wrap">
              <Table>
                <Table.Thead><Table.Tr><Table.Th>Resources</Table.Th><Table.Th>Sent</Table.Th><Table.Th>Acknowledged</Table.Th><Table.Th>Refused</Table.Th></Table.Tr></Table.Thead>
                <Table.Tbody>
                  {e.types.map((t) => (
                    <Table.Tr key={t.type}>
                      <Table.Td>{t.type}</Table.Td>
                      {[t.sent, t.acknowledged, t.refused].map((a, i) => <Table.Td key={i}>{a ? <>{a.resources}, revision {a.revision}, <Time at={a.at} /></> : '-'}</Table.Td>)}
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </div>
          )}
        </Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}

const types = ['listeners', 'routes', 'clusters', 'endpoints', 'secrets', 'extensions']

// Resources are what the Envoys of a proxy should have, in Envoy's own JSON.
function Resources({ proxy }: { proxy: string }) {
  const [type, setType] = useState<string | null>(null)
  const { data, isFetching } = useQuery({
    queryKey: ['live', 'xds', proxy, type],
    enabled: type !== null,
    queryFn: async ({ signal }) => rowsOf<{ name: string; type: string; objects?: string[]; resource: unknown }>((await call<{ data: Record<string, unknown> }>('GET', `/proxy/${proxy}/xds`, { query: { type: type ?? undefined }, signal })).body),
  })
  return (
    <Stack gap="sm" mt="sm">
      <Select aria-label={`Resources of ${proxy}`} placeholder="Show what they should have" data={types} value={type} onChange={setType} clearable w={260} />
      {type && isFetching && !data && <Waiting />}
      {type && data?.length === 0 && <Text size="sm" c="dimmed">There are none.</Text>}
      {type && data && (
        <Accordion variant="separated" className="cards">
          {data.slice(0, 100).map((r) => (
            <Accordion.Item key={r.type + r.name} value={r.name}>
              <Accordion.Control><span className="mono">{r.name}</span></Accordion.Control>
              <Accordion.Panel>
                {r.objects && <Text size="sm" mb="xs">Made from {r.objects.map((o) => <span key={o}><To path={o} /> </span>)}</Text>}
                <CodeBlock text={JSON.stringify(r.resource, null, 2)} label={`${r.type} ${r.name}`} />
              </Accordion.Panel>
            </Accordion.Item>
          ))}
        </Accordion>
      )}
    </Stack>
  )
}
