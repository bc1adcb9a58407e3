/**
 * A layered graph layout, after Sugiyama. Pure.
 *
 * It reverses links so that none leads up, assigns each box a layer by its longest path, adds a
 * bend for each layer that a link passes, orders the layers to reduce crossings, and moves boxes
 * and bends towards their neighbours.
 */

export interface Box {
  readonly id: string
  readonly width: number
  readonly height: number
}

/** A link between two boxes; `width` and `height` are the size of its text. */
export interface Link extends Box {
  readonly from: string
  readonly to: string
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Layout {
  /** Centre of each box. */
  readonly boxes: ReadonlyMap<string, Point>
  /** Points of each link, from edge to edge. */
  readonly links: ReadonlyMap<string, readonly Point[]>
  /** Centre of each link's text. */
  readonly texts: ReadonlyMap<string, Point>
  readonly width: number
  readonly height: number
}

/** An item of a layer: a box, or a bend of a link. */
interface Item {
  readonly id: string
  readonly width: number
  readonly height: number
  readonly is_bend: boolean
  layer: number
  x: number
}

interface Segment {
  readonly upper: Item
  readonly lower: Item
  /** Weight of keeping it straight. */
  readonly strength: number
}

/** Weights: they align consecutive boxes and straighten the inner segments of long links. */
const pull_by_kind = { next: 12, long: 1, passing: 40 } as const

const gap_x = 18
const gap_y = 13
const sweeps = 16
const placement_rounds = 80

/**
 * The links to reverse, so that none leads back: found by depth-first search from the first box.
 */
const linksToReverse = (boxes: readonly Box[], links: readonly Link[]): ReadonlySet<string> => {
  const back = new Set<string>()
  const state = new Map<string, "open" | "done">()
  const visit = (id: string) => {
    state.set(id, "open")
    for (const link of links.filter(({ from }) => from === id)) {
      const target_state = state.get(link.to)
      if (target_state === "open") back.add(link.id)
      else if (target_state === undefined) visit(link.to)
    }
    state.set(id, "done")
  }
  for (const { id } of boxes) if (!state.has(id)) visit(id)
  return back
}

/** Layers by longest path. Boxes take every second layer, so that texts fit in between. */
const layersOf = (boxes: readonly Box[], edges: readonly { from: string; to: string }[]) => {
  const layers = new Map(boxes.map(({ id }) => [id, 0]))
  // Without cycles, this converges within as many rounds as there are boxes.
  for (let round = 0; round < boxes.length; round++) {
    for (const { from, to } of edges) {
      layers.set(to, Math.max(layers.get(to) ?? 0, (layers.get(from) ?? 0) + 2))
    }
  }
  return layers
}

const newItem = (id: string, width: number, height: number, layer: number, is_bend: boolean) =>
  ({ id, width, height, layer, is_bend, x: 0 }) satisfies Item

interface SplitLinks {
  readonly items: readonly Item[]
  readonly segments: readonly Segment[]
  /** Items of each link, from its upper to its lower end. */
  readonly chains: ReadonlyMap<string, readonly Item[]>
  /** The item that holds each link's text. */
  readonly text_items: ReadonlyMap<string, Item>
}

/** Splits each link into a chain of items; its text is next to the box that it leaves. */
const splitLinks = (
  boxes: readonly Box[],
  links: readonly Link[],
  back: ReadonlySet<string>,
): SplitLinks => {
  const edges = links.map(({ id, from, to }) =>
    back.has(id) ? { from: to, to: from } : { from, to },
  )
  const layers = layersOf(boxes, edges)
  const of_box = new Map(
    boxes.map(({ id, width, height }) => [
      id,
      newItem(id, width, height, layers.get(id) ?? 0, false),
    ]),
  )
  const items: Item[] = [...of_box.values()]
  const segments: Segment[] = []
  const chains = new Map<string, readonly Item[]>()
  const text_items = new Map<string, Item>()
  for (const link of links) {
    const is_back = back.has(link.id)
    const upper = of_box.get(is_back ? link.to : link.from)
    const lower = of_box.get(is_back ? link.from : link.to)
    if (upper === undefined || lower === undefined) continue
    const at = is_back ? lower.layer - 1 : upper.layer + 1
    const chain: Item[] = [upper]
    for (let layer = upper.layer + 1; layer < lower.layer; layer++) {
      const has_text = layer === at
      const [width, height] = has_text ? [link.width, link.height] : [0, 0]
      const bend = newItem(`${link.id}/${layer}`, width, height, layer, true)
      if (has_text) text_items.set(link.id, bend)
      chain.push(bend)
      items.push(bend)
    }
    chain.push(lower)
    chains.set(link.id, chain)
    for (const [index, item] of chain.entries()) {
      const next = chain[index + 1]
      if (next === undefined) continue
      const strength =
        item.is_bend && next.is_bend
          ? pull_by_kind.passing
          : chain.length === 3 && !is_back
            ? pull_by_kind.next
            : pull_by_kind.long
      segments.push({ upper: item, lower: next, strength })
    }
  }
  return { items, segments, chains, text_items }
}

const rowsOf = (items: readonly Item[]): Item[][] => {
  const rows: Item[][] = []
  for (const item of items) {
    rows[item.layer] ??= []
    rows[item.layer]?.push(item)
  }
  return Array.from(rows, (row) => row ?? [])
}

/** Neighbours of an item in the layers above and below. */
const neighbours = (segments: readonly Segment[]) => {
  const above = Map.groupBy(segments, ({ lower }) => lower)
  const below = Map.groupBy(segments, ({ upper }) => upper)
  return {
    above: (item: Item) => (above.get(item) ?? []).map(({ upper }) => upper),
    below: (item: Item) => (below.get(item) ?? []).map(({ lower }) => lower),
  }
}

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length

const crossings = (rows: readonly (readonly Item[])[], segments: readonly Segment[]) => {
  const order = new Map(rows.flatMap((row) => row.map((item, index) => [item, index] as const)))
  const by_layer = Map.groupBy(segments, ({ upper }) => upper.layer)
  let count = 0
  for (const group of by_layer.values()) {
    const ends = group.map(
      ({ upper, lower }) => [order.get(upper) ?? 0, order.get(lower) ?? 0] as const,
    )
    for (const [index, [a, b]] of ends.entries()) {
      for (const [c, d] of ends.slice(index + 1)) if ((a - c) * (b - d) < 0) count++
    }
  }
  return count
}

/**
 * Orders each layer by the mean position of its neighbours, alternating downward and upward sweeps.
 * Returns the order with the fewest crossings.
 */
const orderRows = (items: readonly Item[], segments: readonly Segment[]): Item[][] => {
  const { above, below } = neighbours(segments)
  let rows = rowsOf(items)
  let best = rows.map((row) => [...row])
  let fewest = crossings(best, segments)
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep++) {
    const is_down = sweep % 2 === 0
    const order = new Map(rows.flatMap((row) => row.map((item, index) => [item, index] as const)))
    const sorted = (row: readonly Item[]) => {
      const target = new Map(
        row.map((item, index) => {
          const near = (is_down ? above : below)(item).map((other) => order.get(other) ?? 0)
          return [item, near.length === 0 ? index : mean(near)]
        }),
      )
      const next = row.toSorted((item, other) => (target.get(item) ?? 0) - (target.get(other) ?? 0))
      for (const [index, item] of next.entries()) order.set(item, index)
      return next
    }
    rows = is_down ? rows.map(sorted) : rows.toReversed().map(sorted).toReversed()
    const count = crossings(rows, segments)
    if (count < fewest) {
      fewest = count
      best = rows.map((row) => [...row])
    }
  }
  return best
}

/**
 * Moves the items of a row as close to their targets as widths and order allow. Neighbours that
 * would overlap move as one block, to the weighted mean of their targets.
 */
const placeRow = (row: readonly Item[], targets: readonly number[], weights: readonly number[]) => {
  const offsets: number[] = []
  for (const [index, item] of row.entries()) {
    const before = row[index - 1]
    const step = before === undefined ? 0 : (before.width + item.width) / 2 + gap_x
    offsets.push((offsets[index - 1] ?? 0) + step)
  }
  const blocks: { first: number; sum: number; weight: number }[] = []
  const levelOf = ({ sum, weight }: { sum: number; weight: number }) => sum / weight
  for (const [index] of row.entries()) {
    const weight = weights[index] ?? 1
    blocks.push({
      first: index,
      sum: ((targets[index] ?? 0) - (offsets[index] ?? 0)) * weight,
      weight,
    })
    for (;;) {
      const [last, before] = [blocks.at(-1), blocks.at(-2)]
      if (last === undefined || before === undefined || levelOf(before) <= levelOf(last)) break
      blocks.splice(-2, 2, {
        first: before.first,
        sum: before.sum + last.sum,
        weight: before.weight + last.weight,
      })
    }
  }
  for (const [index, block] of blocks.entries()) {
    const end = blocks[index + 1]?.first ?? row.length
    for (let at = block.first; at < end; at++) {
      const item = row[at]
      if (item !== undefined) item.x = levelOf(block) + (offsets[at] ?? 0)
    }
  }
}

const placeRows = (rows: readonly (readonly Item[])[], segments: readonly Segment[]) => {
  const upward = Map.groupBy(segments, ({ lower }) => lower)
  const downward = Map.groupBy(segments, ({ upper }) => upper)
  for (const row of rows) {
    placeRow(
      row,
      row.map(() => 0),
      row.map(() => 1),
    )
  }
  for (let round = 0; round < placement_rounds; round++) {
    const is_down = round % 2 === 0
    // The later rounds use both directions, to centre a box between its neighbours.
    const is_late = round > placement_rounds / 2
    const pulls = (item: Item) => [
      ...(is_down || is_late ? (upward.get(item) ?? []) : []).map(
        ({ upper, strength }) => [upper, strength] as const,
      ),
      ...(!is_down || is_late ? (downward.get(item) ?? []) : []).map(
        ({ lower, strength }) => [lower, strength] as const,
      ),
    ]
    for (const row of is_down ? rows : rows.toReversed()) {
      const all = row.map(pulls)
      const weights = all.map((group) => group.reduce((sum, [, strength]) => sum + strength, 0))
      const targets = row.map((item, index) => {
        const total = weights[index] ?? 0
        if (total === 0) return item.x
        return (
          (all[index] ?? []).reduce((sum, [other, strength]) => sum + other.x * strength, 0) / total
        )
      })
      placeRow(
        row,
        targets,
        weights.map((weight) => Math.max(weight, 0.1)),
      )
    }
  }
}

const port_gap = 14
const port_margin = 12

/** Where the link to a neighbour starts on a box's edge, as an offset from its centre. */
const ports = (segments: readonly Segment[]) => {
  const { above, below } = neighbours(segments)
  return (item: Item, other: Item) => {
    const side = (other.layer > item.layer ? below : above)(item)
    const sorted = side.toSorted((a, b) => a.x - b.x)
    const room = Math.max(0, item.width - 2 * port_margin)
    const step = Math.min(port_gap, room / Math.max(1, sorted.length - 1))
    return (sorted.indexOf(other) - (sorted.length - 1) / 2) * step
  }
}

/** Places boxes and links; the search starts at the first box. All sizes have the same unit. */
export const layeredLayout = (boxes: readonly Box[], links: readonly Link[]): Layout => {
  const back = linksToReverse(boxes, links)
  const { items, segments, chains, text_items } = splitLinks(boxes, links, back)
  const rows = orderRows(items, segments)
  placeRows(rows, segments)
  const left = Math.min(...items.map(({ x, width }) => x - width / 2))
  const right = Math.max(...items.map(({ x, width }) => x + width / 2))
  let height = 0
  const layer_heights = rows.map((row) => Math.max(0, ...row.map((item) => item.height)))
  const middles = layer_heights.map((tallest, index) => {
    const top = index === 0 ? 0 : height + gap_y
    height = top + tallest
    return top + tallest / 2
  })
  const pointOf = ({ x, layer }: Item): Point => ({ x: x - left, y: middles[layer] ?? 0 })
  const portOf = ports(segments)
  const links_at = [...chains].map(([id, chain]) => {
    const ends = chain.flatMap((item, index): readonly Point[] => {
      const { x, y } = pointOf(item)
      const next = chain[index + 1]
      const before = chain[index - 1]
      if (before === undefined && next !== undefined) {
        return [{ x: x + portOf(item, next), y: y + item.height / 2 }]
      }
      if (next === undefined && before !== undefined) {
        return [{ x: x + portOf(item, before), y: y - item.height / 2 }]
      }
      // Cross the whole layer vertically, to avoid boxes that are taller than others.
      const half = (layer_heights[item.layer] ?? 0) / 2
      return [
        { x, y: y - half },
        { x, y: y + half },
      ]
    })
    return [id, back.has(id) ? ends.toReversed() : ends] as const
  })
  return {
    boxes: new Map(items.filter(({ is_bend }) => !is_bend).map((item) => [item.id, pointOf(item)])),
    links: new Map(links_at),
    texts: new Map([...text_items].map(([id, item]) => [id, pointOf(item)])),
    width: right - left,
    height,
  }
}
