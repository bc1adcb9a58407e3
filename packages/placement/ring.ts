/**
 * Consistent-hash ring: maps a blob to the nodes that keep it. A pure function of the eligible
 * nodes, their weights and the points per node, identified by `ring_version`.
 *
 * Each node has points on a circle of 2^52 places. A blob's identifier is a place, and its owners
 * are the first distinct nodes clockwise from there. A new node takes places from the others and
 * moves nothing between them. `owners` is the input of the partition table.
 *
 * Source: document 1 §1 and §2 SyncRingResponse; DECISIONS, document 1, sync-ring.
 */

/** Places on the circle: thirteen hex digits, exact as a number. */
const places = 2 ** 52

/** Maximum points of a node: 16 times the largest setting. */
const points_max = 16 * 1024

/** Weight steps per doubling of capacity: within one step nothing moves (9% up or down). */
const steps_per_doubling = 4

/** A capacity counts at most 16 times the unit and at least a sixteenth. */
const doublings_max = 4

export interface RingNode {
  readonly node_id: string
  /** Points as percent of `vnodes_per_node`. */
  readonly weight_percent: number
  /** The failure domain; without one the node is its own domain. */
  readonly host?: string
}

export interface RingDescription {
  readonly ring_version: number
  readonly vnodes_per_node: number
  readonly nodes: ReadonlyArray<RingNode>
}

export interface Ring {
  readonly ring_version: number
  readonly vnodes_per_node: number
  /** The eligible nodes by id. */
  readonly node_ids: ReadonlyArray<string>
  /** The first `count` distinct nodes from the blob's place on, or all if there are fewer. */
  readonly owners: (id: string, count: number) => ReadonlyArray<string>
  /** The fraction of all identifiers whose first owner is the node; 0 for unknown nodes. */
  readonly share: (node_id: string) => number
}

/** Weight of a capacity in percent, rounded to steps; 0 for a node without capacity. */
export const weightPercent = (capacity_bytes: string, capacity_unit_bytes: string) => {
  if (capacity_bytes === "0") return 0
  const doublings = Math.log2(Number(capacity_bytes) / Number(capacity_unit_bytes))
  const step = Math.round(doublings * steps_per_doubling) / steps_per_doubling
  return Math.round(100 * 2 ** Math.max(-doublings_max, Math.min(step, doublings_max)))
}

/** The number of a node's points. */
export const pointsOf = ({ weight_percent }: RingNode, vnodes_per_node: number) =>
  weight_percent === 0
    ? 0
    : Math.max(1, Math.min(Math.round((vnodes_per_node * weight_percent) / 100), points_max))

/**
 * The place of a node's point `n`, in 0..2^52.
 *
 * Two 32-bit lanes over `<node_id>#<n>`, each FNV-1a with its own prime, mixed with the finalizer
 * of MurmurHash3, so that similar names give unrelated places.
 */
export const placeOfPoint = (node_id: string, n: number) => {
  const text = `${node_id}#${n}`
  let one = 0x811c9dc5
  let other = 0x9e3779b9
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    one = Math.imul(one ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x5bd1e995) ^ (other >>> 15)
  }
  const high = finalize(one ^ Math.imul(other, 0xcc9e2d51))
  const low = finalize(other ^ Math.imul(high, 0x1b873593))
  return (high >>> 0) * 2 ** 20 + (low >>> 12)
}

const finalize = (lane: number) => {
  const first = Math.imul(lane ^ (lane >>> 16), 0x85ebca6b)
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
  return second ^ (second >>> 16)
}

/** A blob's place: the first 52 bits of its identifier, which is a hash already. */
export const placeOfBlob = (id: string) => Number.parseInt(id.slice(0, 13), 16)

/** Draws a ring. The order of the nodes does not matter. */
export const ring = ({ ring_version, vnodes_per_node, nodes }: RingDescription): Ring => {
  const sorted = [...nodes].sort((a, b) => (a.node_id < b.node_id ? -1 : 1))
  const node_ids = sorted.map(({ node_id }) => node_id)
  const points = sorted
    .flatMap((node, owner) =>
      Array.from({ length: pointsOf(node, vnodes_per_node) }, (_, n) => ({
        place: placeOfPoint(node.node_id, n),
        owner,
      })),
    )
    .sort((a, b) => a.place - b.place || a.owner - b.owner)
  const place_of = Float64Array.from(points, ({ place }) => place)
  const owner_of = Uint16Array.from(points, ({ owner }) => owner)
  let shares: ReadonlyMap<string, number> | undefined

  return {
    ring_version,
    vnodes_per_node,
    node_ids,
    owners: (id, count) => ownersFrom(node_ids, place_of, owner_of, placeOfBlob(id), count),
    share: (node_id) => {
      shares ??= sharesOf(node_ids, place_of, owner_of)
      return shares.get(node_id) ?? 0
    },
  }
}

/** The first distinct nodes from a place on, at most once around the circle. */
const ownersFrom = (
  node_ids: ReadonlyArray<string>,
  place_of: Float64Array,
  owner_of: Uint16Array,
  place: number,
  count: number,
) => {
  const first = firstAtOrAfter(place_of, place)
  const found = new Set<string>()
  for (let i = 0; i < owner_of.length && found.size < count; i++) {
    const node_id = node_ids[owner_of[(first + i) % owner_of.length] ?? -1]
    if (node_id !== undefined) found.add(node_id)
  }
  return [...found]
}

const firstAtOrAfter = (sorted: Float64Array, place: number) => {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? Infinity) < place) low = middle + 1
    else high = middle
  }
  return low
}

/** Each node's share of the circle: the arcs that end at its points. */
const sharesOf = (
  node_ids: ReadonlyArray<string>,
  place_of: Float64Array,
  owner_of: Uint16Array,
) => {
  const shares = new Map<string, number>()
  const last = place_of.at(-1)
  if (last === undefined) return shares
  let before = last - places
  for (const [i, place] of place_of.entries()) {
    const node_id = node_ids[owner_of[i] ?? -1]
    const arc = (place - before) / places
    if (node_id !== undefined) shares.set(node_id, (shares.get(node_id) ?? 0) + arc)
    before = place
  }
  return shares
}
