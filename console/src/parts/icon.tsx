// Drawings of 24 by 24, in strokes.
const drawings = {
  overview: 'M4 4h7v9H4zM13 4h7v5h-7zM13 12h7v8h-7zM4 16h7v4H4z',
  service: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  route: 'M5 5v6a4 4 0 0 0 4 4h10M15 11l4 4-4 4M5 5h0',
  upstream: 'M4 5h16v6H4zM4 14h16v6H4zM8 8h0M8 17h0',
  filter: 'M3 5h18l-7 8v6l-4 2v-8z',
  globalconfig: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4',
  secret: 'M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5zM12 15v2',
  keyset: 'M14 10a4 4 0 1 0-2.5 3.7L13 15h2v2h2v2h3v-3l-6.2-6z',
  proxy: 'M4 12h5M15 7h5M15 17h5M9 12l6-5M9 12l6 5',
  envoys: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5',
  events: 'M3 12h4l3-8 4 16 3-8h4',
  history: 'M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5M12 8v4l3 2',
  explain: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L21 21',
  token: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4 21c0-4 3.5-6 8-6s8 2 8 6',
  document: 'M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6',
  limits: 'M4 17a8.5 8.5 0 1 1 16 0M12 15l4-5M12 15h0',
  consumer: 'M9 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM3 20c0-4 2.5-6 6-6s6 2 6 6M16 5a3 3 0 0 1 0 6M17 14c2.5.5 4 2.500 4 6',
  list: 'M9 6h11M9 12h11M9 18h11M5 6h0M5 12h0M5 18h0',
  map: 'M3 6h5v4H3zM16 3h5v4h-5zM16 10h5v4h-5zM16 17h5v4h-5zM8 8h4M12 5v14M12 5h4M12 12h4M12 19h4',
  object: 'M5 5h14v14H5z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5',
  moon: 'M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12l5 5L20 7',
  alert: 'M12 4l9 16H3zM12 10v4M12 17h0',
  info: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5M12 8h0',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  trash: 'M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  out: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  right: 'M9 6l6 6-6 6',
  more: 'M5 12h0M12 12h0M19 12h0',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l12 7-12 7z',
  book: 'M5 4h13v16H6a1 1 0 0 1-1-1zM5 17h13',
} as const

export type IconName = keyof typeof drawings

export function Icon({ name, size = 18 }: { name: string; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" className="icon">
      <path d={drawings[name as IconName] ?? drawings.object} />
    </svg>
  )
}
