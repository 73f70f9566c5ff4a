import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'

const rest = 500 // ms

// useSearchText is the text of a search. The page has it at once, and the address when nothing is typed for a moment:
// changing the address draws the whole page.
export function useSearchText(): [string, (text: string) => void] {
  const { q = '' } = useSearch({ strict: false }) as { q?: string }
  const navigate = useNavigate()
  const router = useRouter()
  const [text, setText] = useState(q)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const written = useRef(q)
  useEffect(() => {
    if (q !== written.current) setText(q) // by a link, or by going back
    written.current = q
  }, [q])
  useEffect(() => () => clearTimeout(timer.current), [])
  const set = (next: string) => {
    setText(next)
    clearTimeout(timer.current)
    const at = router.latestLocation.pathname
    timer.current = setTimeout(() => {
      if (router.latestLocation.pathname !== at) return // the next page is on its way
      written.current = next
      void navigate({ to: '.', search: (old: object) => ({ ...old, q: next || undefined }), replace: true } as never)
    }, rest)
  }
  return [text, set]
}
