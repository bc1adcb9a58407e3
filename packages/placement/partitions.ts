/**
 * The partition table: the ordered owners of each partition of the identifier space.
 *
 * With the ring alone, one of ten nodes has a seventh more load than the mean. So the circle is
 * divided into equal partitions. Each prefers the nodes in ring order, but skips a node that is two
 * percent above its share, or whose host has its maximum of this partition. Partitions are the unit
 * of movement, repair and comparison. The table is a pure function of the ring and the hosts: every
 * node computes the same one.
 *
 * Source: document 1 §2 SyncRingResponse; blob facts §7; decision 0164.
 */
import { copiesInOne, type Domains, domainsOf, sharesOf } from "./failure-domain.ts"
import { type Ring, type RingDescription, ring } from "./ring.ts"

/** Maximum load of a node relative to its share. */
const load_max = 1.02

/** Maximum owners of one partition: an erasure code of 8 + 2 has a shard on each. */
export const owners_max = 10

/**
 * Factor of a node's points here over the ring's: a more even ring skips fewer nodes and moves less
 * data. When an eleventh node joins, a factor of eight moves 6% more than the minimum, a factor of
 * one 22%.
 */
const fineness = 8

/** Minimum partitions per node, so that two percent of a share are several partitions. */
const partitions_per_node = 100

/** Limits of the table's size: base-2 logarithm of the number of partitions. */
const digits_min = 12
const digits_max = 17

const id_digits = 32
const bits_of_digit = 4

export interface Placement {
  readonly ring_version: number
  readonly partitions: number
  /** The partition of an identifier, from 0. */
  readonly partitionOf: (id: string) => number
  /** The first `count` owners of a partition, at most ten, or all if there are fewer. */
  readonly ownersOf: (partition: number, count: number) => ReadonlyArray<string>
  /** The fraction of all copies that a node keeps if each partition has `count`. */
  readonly share: (node_id: string, count: number) => number
}

const digitsFor = (nodes: number) => {
  const wanted = Math.ceil(Math.log2(Math.max(1, nodes * partitions_per_node)))
  return Math.min(Math.max(wanted, digits_min), digits_max)
}

/** An identifier in the middle of a partition. */
const middleOf = (partition: number, digits: number) => {
  // Seventeen digits of a partition, and one for its half: exact in 32 bits.
  const place = ((2 * partition + 1) << (31 - digits - 1)) * 2
  return (place >>> 0).toString(16).padStart(8, "0").padEnd(id_digits, "0")
}

/** Maximum number of partitions per node. */
const limitsOf = (shares: ReadonlyArray<number>, partitions: number) =>
  shares.map((share) => {
    const deserved = share * partitions
    return Math.max(Math.ceil(deserved), Math.floor(deserved * load_max))
  })

/**
 * Assigns owners rank by rank (the first owner of every partition, then the second, and so on), so
 * that the first owners alone are balanced too. The owner at `rank` is the first node in ring order
 * that is below its limit and whose host is below its own.
 */
const assignOwners = (
  circle: Ring,
  weights: ReadonlyArray<number>,
  domains: Domains,
  digits: number,
) => {
  const partitions = 2 ** digits
  const { domain_of, sizes } = domains
  const taken = new Uint8Array(partitions * sizes.length)
  const node_ids = circle.node_ids
  const ranks = Math.min(node_ids.length, owners_max)
  const number_of = new Map(node_ids.map((node_id, at) => [node_id, at]))
  const table = new Uint16Array(partitions * ranks)
  const loads = node_ids.map(() => 0)
  const preferred = Array.from({ length: partitions }, (_, partition) =>
    circle
      .owners(middleOf(partition, digits), node_ids.length)
      .map((node_id) => number_of.get(node_id) ?? 0),
  )
  for (let rank = 0; rank < ranks; rank++) {
    const limits = limitsOf(sharesOf(domains, weights, rank + 1), partitions)
    const most = copiesInOne(domains, rank + 1)
    for (const [partition, wanted] of preferred.entries()) {
      const placeOf = (node: number) => partition * sizes.length + (domain_of[node] ?? 0)
      const isApart = (node: number) => (taken[placeOf(node)] ?? 0) < most
      const hasRoom = (node: number) => (loads[node] ?? 0) < (limits[node] ?? 0)
      const best = wanted.findIndex((node) => isApart(node) && hasRoom(node))
      // If all remaining nodes are full, ring order decides.
      const [node = 0] = wanted.splice(best < 0 ? wanted.findIndex(isApart) : best, 1)
      const place = placeOf(node)
      taken[place] = (taken[place] ?? 0) + 1
      table[partition * ranks + rank] = node
      loads[node] = (loads[node] ?? 0) + 1
    }
  }
  return { table, ranks }
}

/**
 * Computes the table. The order of the nodes does not matter; nodes without weight are excluded.
 */
export const placement = (description: RingDescription): Placement => {
  const nodes = description.nodes.filter(({ weight_percent }) => weight_percent > 0)
  const vnodes_per_node = description.vnodes_per_node * fineness
  const circle = ring({ ...description, vnodes_per_node, nodes })
  const { node_ids } = circle
  const node_of = new Map(nodes.map((node) => [node.node_id, node]))
  const weights = node_ids.map((node_id) => node_of.get(node_id)?.weight_percent ?? 0)
  const domains = domainsOf(node_ids.map((node_id) => node_of.get(node_id)?.host))
  const digits = digitsFor(node_ids.length)
  const partitions = 2 ** digits
  const { table, ranks } = assignOwners(circle, weights, domains, digits)
  const hex_digits = Math.ceil(digits / bits_of_digit)
  const spare_bits = hex_digits * bits_of_digit - digits

  return {
    ring_version: description.ring_version,
    partitions,
    partitionOf: (id) => Number.parseInt(id.slice(0, hex_digits), 16) >>> spare_bits,
    ownersOf: (partition, count) => {
      const first = partition * ranks
      const found = table.subarray(first, first + Math.min(count, ranks))
      return Array.from(found, (node) => node_ids[node] ?? "")
    },
    share: (node_id, count) => {
      const node = node_ids.indexOf(node_id)
      const copies = Math.min(count, ranks)
      let kept = 0
      for (const [at, owner] of table.entries()) {
        if (owner === node && at % ranks < copies) kept += 1
      }
      return kept / (partitions * copies)
    },
  }
}
