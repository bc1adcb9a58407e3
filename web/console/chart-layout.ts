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
interface Place {
  readonly id: string
  readonly width: number
  readonly height: number
  readonly is_bend: boolean
  layer: number
  x: number
}

interface Joint {
  readonly upper: Place
  readonly lower: Place
  /** Weight of keeping it straight. */
  readonly pull: number
}

/** Weights: consecutive boxes are aligned, and the inner segments of a long link are straight. */
const pull_of = { next: 12, long: 1, passing: 40 } as const

const gap_x = 18
const gap_y = 13
const sweeps = 16
const settlings = 80

/**
 * The links to reverse, so that none leads back: found by depth-first search from the first box.
 */
const turned = (boxes: readonly Box[], links: readonly Link[]): ReadonlySet<string> => {
  const back = new Set<string>()
  const state = new Map<string, "open" | "done">()
  const walk = (id: string) => {
    state.set(id, "open")
    for (const link of links.filter(({ from }) => from === id)) {
      const there = state.get(link.to)
      if (there === "open") back.add(link.id)
      else if (there === undefined) walk(link.to)
    }
    state.set(id, "done")
  }
  for (const { id } of boxes) if (!state.has(id)) walk(id)
  return back
}

/** Layers by longest path. Boxes take every second layer, so that texts fit in between. */
const layersOf = (boxes: readonly Box[], ways: readonly { from: string; to: string }[]) => {
  const layers = new Map(boxes.map(({ id }) => [id, 0]))
  // Without cycles, this converges within as many rounds as there are boxes.
  for (let round = 0; round < boxes.length; round++) {
    for (const { from, to } of ways) {
      layers.set(to, Math.max(layers.get(to) ?? 0, (layers.get(from) ?? 0) + 2))
    }
  }
  return layers
}

const place = (id: string, width: number, height: number, layer: number, is_bend: boolean) =>
  ({ id, width, height, layer, is_bend, x: 0 }) satisfies Place

interface Laid {
  readonly places: readonly Place[]
  readonly joints: readonly Joint[]
  /** Items of each link, from its upper to its lower end. */
  readonly chains: ReadonlyMap<string, readonly Place[]>
  /** The item that holds each link's text. */
  readonly worded: ReadonlyMap<string, Place>
}

/** Splits each link into a chain of items; its text is next to the box that it leaves. */
const laid = (boxes: readonly Box[], links: readonly Link[], back: ReadonlySet<string>): Laid => {
  const ways = links.map(({ id, from, to }) =>
    back.has(id) ? { from: to, to: from } : { from, to },
  )
  const layers = layersOf(boxes, ways)
  const of_box = new Map(
    boxes.map(({ id, width, height }) => [
      id,
      place(id, width, height, layers.get(id) ?? 0, false),
    ]),
  )
  const places: Place[] = [...of_box.values()]
  const joints: Joint[] = []
  const chains = new Map<string, readonly Place[]>()
  const worded = new Map<string, Place>()
  for (const link of links) {
    const is_back = back.has(link.id)
    const upper = of_box.get(is_back ? link.to : link.from)
    const lower = of_box.get(is_back ? link.from : link.to)
    if (upper === undefined || lower === undefined) continue
    const at = is_back ? lower.layer - 1 : upper.layer + 1
    const chain: Place[] = [upper]
    for (let layer = upper.layer + 1; layer < lower.layer; layer++) {
      const is_worded = layer === at
      const [width, height] = is_worded ? [link.width, link.height] : [0, 0]
      const bend = place(`${link.id}/${layer}`, width, height, layer, true)
      if (is_worded) worded.set(link.id, bend)
      chain.push(bend)
      places.push(bend)
    }
    chain.push(lower)
    chains.set(link.id, chain)
    for (const [index, one] of chain.entries()) {
      const next = chain[index + 1]
      if (next === undefined) continue
      const pull =
        one.is_bend && next.is_bend
          ? pull_of.passing
          : chain.length === 3 && !is_back
            ? pull_of.next
            : pull_of.long
      joints.push({ upper: one, lower: next, pull })
    }
  }
  return { places, joints, chains, worded }
}

const rowsOf = (places: readonly Place[]): Place[][] => {
  const rows: Place[][] = []
  for (const one of places) {
    rows[one.layer] ??= []
    rows[one.layer]?.push(one)
  }
  return Array.from(rows, (row) => row ?? [])
}

/** Neighbours of an item in the layers above and below. */
const neighbours = (joints: readonly Joint[]) => {
  const above = Map.groupBy(joints, ({ lower }) => lower)
  const below = Map.groupBy(joints, ({ upper }) => upper)
  return {
    above: (one: Place) => (above.get(one) ?? []).map(({ upper }) => upper),
    below: (one: Place) => (below.get(one) ?? []).map(({ lower }) => lower),
  }
}

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length

const crossings = (rows: readonly (readonly Place[])[], joints: readonly Joint[]) => {
  const order = new Map(rows.flatMap((row) => row.map((one, index) => [one, index] as const)))
  const by_layer = Map.groupBy(joints, ({ upper }) => upper.layer)
  let count = 0
  for (const some of by_layer.values()) {
    const ends = some.map(
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
const ordered = (places: readonly Place[], joints: readonly Joint[]): Place[][] => {
  const { above, below } = neighbours(joints)
  let rows = rowsOf(places)
  let best = rows.map((row) => [...row])
  let fewest = crossings(best, joints)
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep++) {
    const is_down = sweep % 2 === 0
    const order = new Map(rows.flatMap((row) => row.map((one, index) => [one, index] as const)))
    const sorted = (row: readonly Place[]) => {
      const wish = new Map(
        row.map((one, index) => {
          const near = (is_down ? above : below)(one).map((other) => order.get(other) ?? 0)
          return [one, near.length === 0 ? index : mean(near)]
        }),
      )
      const next = row.toSorted((one, other) => (wish.get(one) ?? 0) - (wish.get(other) ?? 0))
      for (const [index, one] of next.entries()) order.set(one, index)
      return next
    }
    rows = is_down ? rows.map(sorted) : rows.toReversed().map(sorted).toReversed()
    const count = crossings(rows, joints)
    if (count < fewest) {
      fewest = count
      best = rows.map((row) => [...row])
    }
  }
  return best
}

/**
 * Moves the items of a row as close to their wishes as widths and order allow. Neighbours that
 * would overlap move as one block, to the weighted mean of their wishes.
 */
const settle = (row: readonly Place[], wishes: readonly number[], weights: readonly number[]) => {
  const offsets: number[] = []
  for (const [index, one] of row.entries()) {
    const before = row[index - 1]
    const step = before === undefined ? 0 : (before.width + one.width) / 2 + gap_x
    offsets.push((offsets[index - 1] ?? 0) + step)
  }
  const blocks: { first: number; sum: number; weight: number }[] = []
  const levelOf = ({ sum, weight }: { sum: number; weight: number }) => sum / weight
  for (const [index] of row.entries()) {
    const weight = weights[index] ?? 1
    blocks.push({
      first: index,
      sum: ((wishes[index] ?? 0) - (offsets[index] ?? 0)) * weight,
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
      const one = row[at]
      if (one !== undefined) one.x = levelOf(block) + (offsets[at] ?? 0)
    }
  }
}

const spread = (rows: readonly (readonly Place[])[], joints: readonly Joint[]) => {
  const upward = Map.groupBy(joints, ({ lower }) => lower)
  const downward = Map.groupBy(joints, ({ upper }) => upper)
  for (const row of rows) {
    settle(
      row,
      row.map(() => 0),
      row.map(() => 1),
    )
  }
  for (let round = 0; round < settlings; round++) {
    const is_down = round % 2 === 0
    // The later rounds use both directions, to centre a box between its neighbours.
    const is_late = round > settlings / 2
    const pulls = (one: Place) => [
      ...(is_down || is_late ? (upward.get(one) ?? []) : []).map(
        ({ upper, pull }) => [upper, pull] as const,
      ),
      ...(!is_down || is_late ? (downward.get(one) ?? []) : []).map(
        ({ lower, pull }) => [lower, pull] as const,
      ),
    ]
    for (const row of is_down ? rows : rows.toReversed()) {
      const all = row.map(pulls)
      const weights = all.map((some) => some.reduce((sum, [, pull]) => sum + pull, 0))
      const wishes = row.map((one, index) => {
        const total = weights[index] ?? 0
        if (total === 0) return one.x
        return (all[index] ?? []).reduce((sum, [other, pull]) => sum + other.x * pull, 0) / total
      })
      settle(
        row,
        wishes,
        weights.map((weight) => Math.max(weight, 0.1)),
      )
    }
  }
}

const port_gap = 14
const port_margin = 12

/** Offset from the centre of a box's edge at which the link to a neighbour starts. */
const ports = (joints: readonly Joint[]) => {
  const { above, below } = neighbours(joints)
  return (one: Place, other: Place) => {
    const side = (other.layer > one.layer ? below : above)(one)
    const sorted = side.toSorted((a, b) => a.x - b.x)
    const room = Math.max(0, one.width - 2 * port_margin)
    const step = Math.min(port_gap, room / Math.max(1, sorted.length - 1))
    return (sorted.indexOf(other) - (sorted.length - 1) / 2) * step
  }
}

/** Places boxes and links; the search starts at the first box. All sizes have the same unit. */
export const layeredLayout = (boxes: readonly Box[], links: readonly Link[]): Layout => {
  const back = turned(boxes, links)
  const { places, joints, chains, worded } = laid(boxes, links, back)
  const rows = ordered(places, joints)
  spread(rows, joints)
  const left = Math.min(...places.map(({ x, width }) => x - width / 2))
  const right = Math.max(...places.map(({ x, width }) => x + width / 2))
  let height = 0
  const tall = rows.map((row) => Math.max(0, ...row.map((one) => one.height)))
  const middles = tall.map((tallest, index) => {
    const top = index === 0 ? 0 : height + gap_y
    height = top + tallest
    return top + tallest / 2
  })
  const pointOf = ({ x, layer }: Place): Point => ({ x: x - left, y: middles[layer] ?? 0 })
  const portOf = ports(joints)
  const links_at = [...chains].map(([id, chain]) => {
    const ends = chain.flatMap((one, index): readonly Point[] => {
      const { x, y } = pointOf(one)
      const next = chain[index + 1]
      const before = chain[index - 1]
      if (before === undefined && next !== undefined) {
        return [{ x: x + portOf(one, next), y: y + one.height / 2 }]
      }
      if (next === undefined && before !== undefined) {
        return [{ x: x + portOf(one, before), y: y - one.height / 2 }]
      }
      // Cross the whole layer vertically, to avoid boxes that are taller than others.
      const half = (tall[one.layer] ?? 0) / 2
      return [
        { x, y: y - half },
        { x, y: y + half },
      ]
    })
    return [id, back.has(id) ? ends.toReversed() : ends] as const
  })
  return {
    boxes: new Map(places.filter(({ is_bend }) => !is_bend).map((one) => [one.id, pointOf(one)])),
    links: new Map(links_at),
    texts: new Map([...worded].map(([id, one]) => [id, pointOf(one)])),
    width: right - left,
    height,
  }
}
