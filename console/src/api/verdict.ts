// What is not live, from what /status says.
import type { Status } from './state'

export type Level = 'ok' | 'info' | 'warning' | 'error'

export interface Finding {
  level: Level
  // code is a condition, or the state of an Envoy.
  code: string
  // objects are paths of the API.
  objects: string[]
  message: string
  where?: string
}

// These conditions say that something can be better, and not that requests fail.
const hints = new Set(['NoCertificate', 'UpstreamUnverified', 'CertificateBeaten', 'CertificateServed', 'Answering', 'NotChecked', 'Unattached', 'NotForwarded'])
const warnings = new Set(['CertificateExpires', 'NoRates', 'UnknownDomain', 'NoMatchingRate', 'NoRateLimitEngine', 'NoHTTP3', 'NoDatabase', 'NoUpstream', 'NoEndpoints', 'HostConflict', 'CertificateNotForHost'])

export const levelOf = (code: string): Level => (hints.has(code) ? 'info' : warnings.has(code) ? 'warning' : 'error')

const rank: Record<Level, number> = { error: 0, warning: 1, info: 2, ok: 3 }

export function findingsOf(s: Status): Finding[] {
  const all: Finding[] = []
  if (s.held) all.push({ level: 'error', code: 'Held', objects: [], message: s.held })
  for (const p of s.proxies) {
    if (p.envoys.length === 0) all.push({ level: 'warning', code: 'NoEnvoy', objects: [`/proxy/${p.proxy}`], message: 'no Envoy is connected, so nothing of this proxy is served' })
    for (const e of p.envoys) {
      for (const r of e.refused) all.push({ level: 'error', code: 'Rejected', objects: r.objects, message: r.message, where: `Envoy ${e.address} of ${p.proxy}` })
      for (const w of e.waiting)
        all.push({ level: 'info', code: 'Waiting', objects: [w.object], message: `waits for ${w.for.flatMap((f) => f.objects).join(', ') || 'a resource'}`, where: `Envoy ${e.address} of ${p.proxy}` })
      if (e.state === 'unheard') all.push({ level: 'warning', code: 'Unheard', objects: [`/proxy/${p.proxy}`], message: 'its replica is not heard, and what it has is unknown', where: `Envoy ${e.address}` })
    }
  }
  for (const c of s.conditions) all.push({ level: levelOf(c.code), code: c.code, objects: [c.path], message: c.message })
  for (const u of s.upstreams ?? [])
    all.push({ level: 'error', code: 'Failing', objects: u.object ? [u.object] : [], message: u.health_message, where: `${u.address}, proxy ${u.proxy}` })
  for (const n of s.waiting_nodes) all.push({ level: s.revision === 0 ? 'info' : 'warning', code: 'NoProxy', objects: [], message: `an Envoy at ${n.address} asks for the proxy ${n.node}, which does not exist` })
  return joined(all).sort((a, b) => rank[a.level] - rank[b.level])
}

// joined makes one of what several Envoys say in the same words, and drops what /status says twice.
function joined(all: Finding[]): Finding[] {
  const by = new Map<string, Finding>()
  for (const f of all) {
    const key = [f.code, f.objects.join(), f.code === 'Failing' ? '' : f.message].join('\n')
    const before = by.get(key)
    if (!before) by.set(key, { ...f })
    else if (f.where && !before.where?.includes(f.where)) before.where = before.where ? `${before.where}; ${f.where}` : f.where
  }
  return [...by.values()]
}

export const worst = (all: Finding[]): Level => all.reduce<Level>((a, f) => (rank[f.level] < rank[a] ? f.level : a), 'ok')

export const colorOf: Record<Level, string> = { ok: 'teal', info: 'blue', warning: 'yellow', error: 'red' }
