import type { Problem } from '../api/client'

// marksOf finds the lines of a document that a problem names.
export const marksOf = (problem: Problem | undefined) =>
  (problem?.errors ?? []).flatMap((e) => {
    const text = `${e.field}: ${e.message}`
    const line = /\bline (\d+)\b/.exec(text)?.[1]
    return line ? [{ line: Number(line), message: text }] : []
  })
