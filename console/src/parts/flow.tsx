// The map as a graph. It is one field for the keyboard: places that are out of sight are not in the page.
import '@xyflow/react/dist/base.css'
import { UnstyledButton } from '@mantine/core'
import { Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow, type ReactFlowInstance } from '@xyflow/react'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, memo, useEffect, useMemo, useRef, useState } from 'react'
import { type Health, placesOf, type Shown } from '../api/map'
import { HealthBadge, type MapProps, mayOpen } from '../pages/map'
import { To } from './bits'
import { Icon } from './icon'

interface Data extends Record<string, unknown> {
  shown: Shown
  health?: Health
  chosen: boolean
  toggle: () => void
  grow: () => void
}
type MapNode = Node<Data>

const width = 198
const height = 46
const step = { x: 244, y: 56 }
const types = { thing: ThingNode, more: MoreNode }
const fixed = { width, height }

function ThingNode({ data }: NodeProps<MapNode>) {
  const { thing, children } = data.shown
  return (
    <div className="map-node" data-level={data.health?.level} data-chosen={data.chosen} data-column={thing.column}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Icon name={thing.column} size={16} />
      <span className="grow">
        <span className="map-name" title={thing.label}>{thing.label}</span>
        <span className="map-hint">{data.health && data.health.level !== 'info' ? <HealthBadge health={data.health} /> : null}<span title={thing.hint}>{thing.hint}</span></span>
      </span>
      {mayOpen(data.shown) && (
        <UnstyledButton className="map-toggle nodrag nopan" tabIndex={-1} aria-expanded={children.length > 0} aria-label={`${thing.children.length} below ${thing.label}`} onClick={(e) => { e.stopPropagation(); data.toggle() }}>
          <span className="map-count">{thing.children.length}</span><Icon name="right" size={14} />
        </UnstyledButton>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  )
}

function MoreNode({ data }: NodeProps<MapNode>) {
  return <UnstyledButton className="map-more nodrag nopan" tabIndex={-1} onClick={data.grow}>Show more of {data.shown.more} others</UnstyledButton>
}

function elementsOf({ view, health, toggle, grow }: MapProps, chosen: string): { nodes: MapNode[]; edges: Edge[] } {
  const nodes: MapNode[] = []
  const edges: Edge[] = []
  for (const at of placesOf(view)) {
    const shown = view.shown.get(at.id)
    if (!shown) continue
    const { id } = at
    const data = { shown, health: health.get(id), chosen: id === chosen, toggle: () => toggle(id), grow: () => grow(id) }
    const position = { x: at.column * step.x, y: at.row * step.y }
    if (at.more) {
      nodes.push({ id: `${id} more`, type: 'more', data, position, ...fixed })
      continue
    }
    nodes.push({ id, type: 'thing', data, position, ...fixed })
    for (const c of shown.children) edges.push({ id: `${id} ${c}`, source: id, target: c, focusable: false, className: chosen === id || chosen === c ? 'map-edge chosen' : 'map-edge' })
  }
  return { nodes, edges }
}

export const Flow = memo(function Flow(props: MapProps) {
  const { view, health: healths, toggle, grow } = props
  const navigate = useNavigate()
  const [asked, setChosen] = useState('')
  const chosen = view.shown.has(asked) ? asked : (view.roots[0] ?? '')
  const flow = useRef<ReactFlowInstance<MapNode, Edge>>(null)
  const box = useRef<HTMLDivElement>(null)
  const { nodes, edges } = useMemo(() => elementsOf({ view, health: healths, toggle, grow }, chosen), [view, healths, toggle, grow, chosen])
  const at = useMemo(() => new Map(nodes.map((n) => [n.id, n.position])), [nodes])
  useEffect(() => {
    void flow.current?.setViewport(start)
  }, [view.matches])
  const choose = (id: string | undefined) => {
    const position = id && at.get(id)
    if (!id || !position || !flow.current || !box.current) return
    setChosen(id)
    const { x, y, zoom } = flow.current.getViewport()
    const { width: w, height: h } = box.current.getBoundingClientRect()
    const left = position.x * zoom + x
    const top = position.y * zoom + y
    if (left < 0 || top < 0 || left + width * zoom > w || top + height * zoom > h) void flow.current.setCenter(position.x + width / 2, position.y + height / 2, { zoom })
  }
  const key = (e: KeyboardEvent) => {
    const s = view.shown.get(chosen)
    if (!s || e.target !== box.current) return
    const column = nodes.filter((n) => n.type === 'thing' && n.data.shown.thing.column === s.thing.column).sort((a, b) => a.position.y - b.position.y).map((n) => n.id)
    const keys: Record<string, () => void> = {
      ArrowUp: () => choose(column[column.indexOf(chosen) - 1]),
      ArrowDown: () => choose(column[column.indexOf(chosen) + 1]),
      ArrowLeft: () => choose(s.thing.parents.find((p) => view.shown.has(p))),
      ArrowRight: () => (s.children.length > 0 ? choose(s.children[0]) : mayOpen(s) ? props.toggle(chosen) : undefined),
      ' ': () => (mayOpen(s) ? props.toggle(chosen) : undefined),
      '+': () => (s.more > 0 ? props.grow(chosen) : undefined),
      Enter: () => s.thing.links[0] && void navigate({ to: s.thing.links[0] }),
    }
    const run = keys[e.key]
    if (!run) return
    e.preventDefault()
    run()
  }
  const s = view.shown.get(chosen)
  const health = props.health.get(chosen)
  return (
    <>
      <div
        ref={box} className="map" role="application" tabIndex={0} onKeyDown={key} aria-describedby="map-chosen"
        aria-label="Map. The arrow keys move, Space opens and closes, plus shows more, Enter goes to the object. The list has the same."
      >
        <ReactFlow
          nodes={nodes} edges={edges} nodeTypes={types} onInit={(f) => { flow.current = f }} defaultViewport={start} onlyRenderVisibleElements minZoom={0.2} maxZoom={1.5}
          nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false} elementsSelectable={false} panOnScroll zoomOnScroll={false} zoomOnDoubleClick={false} disableKeyboardA11y
          onNodeClick={(_, n) => n.type === 'thing' && setChosen(n.id)} onNodeDoubleClick={(_, n) => n.data.shown.thing.links[0] && void navigate({ to: n.data.shown.thing.links[0] })}
        >
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      {s && (
        <div className="map-chosen" id="map-chosen" role="status">
          <Icon name={s.thing.column} size={16} />
          <span>{s.thing.column}</span>
          {s.thing.links.length === 0 ? s.thing.label : s.thing.links.map((l) => <To key={l} path={l} />)}
          <span className="map-hint">{s.thing.hint}</span>
          <HealthBadge health={health} /> {health && health.level !== 'ok' && <span>{health.message}</span>}
        </div>
      )}
    </>
  )
})

const start = { x: 16, y: 16, zoom: 0.86 }
