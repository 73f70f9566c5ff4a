// An editor of YAML, which is loaded with the first page that has one.
import { useComputedColorScheme } from '@mantine/core'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { nonce } from '../nonce'

// Mark is what is wrong in a line, which is counted from 1.
export interface Mark {
  line: number
  message: string
}

interface Props {
  value: string
  onChange?: (text: string) => void
  label: string
  marks?: Mark[]
  // submit is what Ctrl-Enter does.
  submit?: () => void
  short?: boolean
}

const colors = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], class: 'code-key' },
  { tag: [tags.string, tags.content, tags.attributeValue], class: 'code-text' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], class: 'code-value' },
  { tag: [tags.comment, tags.lineComment, tags.meta], class: 'code-comment' },
])

const dark = new Compartment()

// replaced does what a browser does when a key replaces a selection; a browser adds styles that the policy forbids.
const replaced = EditorView.domEventHandlers({
  beforeinput: (e, view) => {
    if (e.inputType !== 'insertText' || e.data === null || view.composing || view.state.readOnly || view.state.selection.main.empty) return false
    view.dispatch(view.state.replaceSelection(e.data), { userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

// Tab is not taken: it leaves the editor.
function extensionsOf(label: string, change: { current?: (text: string) => void }, submit: { current?: () => void }) {
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(), history(), drawSelection(), highlightActiveLine(), highlightActiveLineGutter(), highlightSelectionMatches(), search({ top: true }),
    keymap.of([{ key: 'Mod-Enter', run: () => Boolean(submit.current?.()) || true }, ...defaultKeymap, ...historyKeymap, ...searchKeymap]),
    yaml(), syntaxHighlighting(colors), replaced, EditorView.lineWrapping,
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0', spellcheck: 'false' }),
    EditorState.readOnly.of(!change.current),
    EditorView.updateListener.of((u) => {
      if (u.docChanged) change.current?.(u.state.doc.toString())
    }),
  ]
}

export function Editor({ value, onChange, label, marks = [], submit, short }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(null)
  const change = useRef(onChange)
  change.current = onChange
  const send = useRef(submit)
  send.current = submit
  const first = useRef(value)
  const scheme = useComputedColorScheme('light')
  useEffect(() => {
    if (!place.current) return
    const v = new EditorView({ parent: place.current, doc: first.current, extensions: [extensionsOf(label, change, send), dark.of([])] })
    view.current = v
    return () => v.destroy()
  }, [label])
  useEffect(() => {
    view.current?.dispatch({ effects: dark.reconfigure(EditorView.darkTheme.of(scheme === 'dark')) })
  }, [scheme])
  useEffect(() => {
    const v = view.current
    if (v && v.state.doc.toString() !== value) v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: value } })
  }, [value])
  useEffect(() => {
    const v = view.current
    if (!v) return
    const list = marks.filter((m) => m.line >= 1 && m.line <= v.state.doc.lines).map((m): Diagnostic => {
      const line = v.state.doc.line(m.line)
      return { from: line.from, to: line.to, severity: 'error', message: m.message }
    })
    v.dispatch(setDiagnostics(v.state, list))
    if (list.length > 0) v.dispatch({ selection: { anchor: list[0].from }, effects: EditorView.scrollIntoView(list[0].from, { y: 'center' }) })
  }, [marks])
  return <div ref={place} className={short ? 'editor short' : 'editor'} />
}
