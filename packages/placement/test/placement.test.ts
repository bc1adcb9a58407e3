import assert from "node:assert/strict"
import { describe, it } from "@effect/vitest"
import fc from "fast-check"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import { owners_max, type Placement, placement, type RingNode, ring } from "../placement.ts"

const described = (nodes: ReadonlyArray<RingNode>) => ({
  ring_version: 7,
  vnodes_per_node: 128,
  nodes,
})
const equalNodes = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ node_id: `node-${at}`, weight_percent: 100 }))

const all = ({ partitions, ownersOf }: Placement, count: number) =>
  Array.from({ length: partitions }, (_, partition) => ownersOf(partition, count))

/** The share of copies that the second table places on nodes where the first has none, 0 to 1. */
const moved = (before: Placement, after: Placement, count: number) => {
  assert.equal(before.partitions, after.partitions)
  const old = all(before, count)
  const fresh = all(after, count)
  const new_copies = fresh.flatMap((owners, partition) =>
    owners.filter((owner) => !old[partition]?.includes(owner)),
  )
  return new_copies.length / fresh.flat().length
}

const nodesArbitrary = fc.uniqueArray(
  fc.record({
    node_id: fc.stringMatching(/^[a-z0-9]{1,8}$/),
    weight_percent: fc.constantFrom(0, 25, 50, 100, 119, 200, 400, 1600),
  }),
  { minLength: 1, maxLength: 14, selector: ({ node_id }) => node_id },
)

const hostedArbitrary = fc.uniqueArray(
  fc.record({
    node_id: fc.stringMatching(/^[a-z0-9]{1,8}$/),
    weight_percent: fc.constantFrom(0, 50, 100, 119, 400),
    host: fc.constantFrom("a", "b", "c", "d"),
  }),
  { minLength: 1, maxLength: 12, selector: ({ node_id }) => node_id },
)

/** `hosts` has the number of nodes of each host. */
const nodesOnHosts = (...hosts: ReadonlyArray<number>): ReadonlyArray<RingNode> =>
  hosts.flatMap((nodes, host) =>
    Array.from({ length: nodes }, (_, at) => ({
      node_id: `node-${host}-${at}`,
      weight_percent: 100,
      host: `host-${host}`,
    })),
  )

/** The maximum number of these nodes on one host. */
const mostOnOne = (nodes: ReadonlyArray<RingNode>, owners: ReadonlyArray<string>) => {
  const counts = new Map<string, number>()
  for (const owner of owners) {
    const host = nodes.find(({ node_id }) => node_id === owner)?.host ?? owner
    counts.set(host, (counts.get(host) ?? 0) + 1)
  }
  return Math.max(...counts.values())
}

/** The lowest possible maximum of copies on one host, found by trying in order. */
const fewestOnOne = (nodes: ReadonlyArray<RingNode>, count: number) => {
  const hosts = [...new Set(nodes.map(({ host }) => host))]
  const sizes = hosts.map((host) => nodes.filter((node) => node.host === host).length)
  const wanted = Math.min(count, nodes.length)
  for (let most = 1; ; most++) {
    const room = sizes.map((size) => Math.min(size, most)).reduce((sum, one) => sum + one, 0)
    if (room >= wanted) return most
  }
}

/** The definition, step by step and without caching: the owner at each rank. */
const oracle = (nodes: ReadonlyArray<RingNode>, partitions: number) => {
  const present = nodes.filter(({ weight_percent }) => weight_percent > 0)
  const circle = ring({ ...described(present), vnodes_per_node: 8 * 128 })
  const owned: Array<Array<string>> = Array.from({ length: partitions }, () => [])
  const ranks = Math.min(present.length, owners_max)
  for (let copies = 1; copies <= ranks; copies++) {
    const full = new Set<string>()
    const share = (node: RingNode) => {
      if (full.has(node.node_id)) return 1
      const others = present.filter(({ node_id }) => !full.has(node_id))
      const total = others.reduce((sum, other) => sum + other.weight_percent, 0)
      return ((copies - full.size) * node.weight_percent) / total
    }
    for (let grows = true; grows; ) {
      const more = present.filter((node) => !full.has(node.node_id) && share(node) >= 1)
      for (const { node_id } of more) full.add(node_id)
      grows = more.length > 0
    }
    const limits = new Map(
      present.map((node) => {
        const share_of_node = share(node) * partitions
        return [node.node_id, Math.max(Math.ceil(share_of_node), Math.floor(share_of_node * 1.02))]
      }),
    )
    for (let partition = 0; partition < partitions; partition++) {
      const middle = BigInt(2 * partition + 1) * (2n ** 128n / BigInt(2 * partitions))
      const id = BlobId.make(middle.toString(16).padStart(32, "0"))
      const left = circle.owners(id, 99).filter((node) => !owned[partition]?.includes(node))
      const load = (node: string) => owned.filter((owners) => owners.includes(node)).length
      const next = left.find((node) => load(node) < (limits.get(node) ?? 0)) ?? left[0]
      if (next !== undefined) owned[partition]?.push(next)
    }
  }
  return owned
}

describe("the partition table", () => {
  it("equals the result of a naive oracle", { timeout: 60_000 }, () => {
    const few = fc.uniqueArray(
      fc.record({
        node_id: fc.stringMatching(/^[a-z]{1,4}$/),
        weight_percent: fc.constantFrom(0, 50, 100, 400),
      }),
      { minLength: 1, maxLength: 4, selector: ({ node_id }) => node_id },
    )
    fc.assert(
      fc.property(few, (nodes) => {
        const drawn = placement(described(nodes))
        assert.deepEqual(all(drawn, owners_max), oracle(nodes, drawn.partitions))
      }),
      { numRuns: 3 },
    )
  })

  it("does not depend on the order of the nodes", () => {
    fc.assert(
      fc.property(nodesArbitrary, (nodes) => {
        const one = placement(described(nodes))
        const other = placement(described(nodes.toReversed()))
        assert.deepEqual(all(one, owners_max), all(other, owners_max))
      }),
      { numRuns: 10 },
    )
  })

  it("names each owner once, and at most as many as there are nodes with a weight", () => {
    fc.assert(
      fc.property(nodesArbitrary, (nodes) => {
        const present = nodes.filter(({ weight_percent }) => weight_percent > 0)
        const drawn = placement(described(nodes))
        for (const owners of all(drawn, owners_max)) {
          assert.equal(new Set(owners).size, Math.min(present.length, owners_max))
          assert.equal(owners.length, new Set(owners).size)
        }
      }),
      { numRuns: 20 },
    )
  })

  it("places any number of copies on as many hosts as possible", () => {
    fc.assert(
      fc.property(hostedArbitrary, (nodes) => {
        const present = nodes.filter(({ weight_percent }) => weight_percent > 0)
        fc.pre(present.length > 0)
        const drawn = placement(described(nodes))
        for (const count of [1, 2, 3, 6, 10]) {
          const most = all(drawn, count).map((owners) => mostOnOne(present, owners))
          assert.equal(Math.max(...most), fewestOnOne(present, count))
        }
      }),
      { numRuns: 20 },
    )
  })

  it("is the same if each node has its own host and if all share one", () => {
    fc.assert(
      fc.property(nodesArbitrary, (nodes) => {
        const plain = all(placement(described(nodes)), owners_max)
        const apart = nodes.map((node) => ({ ...node, host: node.node_id }))
        const together = nodes.map((node) => ({ ...node, host: "one" }))
        assert.deepEqual(all(placement(described(apart)), owners_max), plain)
        assert.deepEqual(all(placement(described(together)), owners_max), plain)
      }),
      { numRuns: 10 },
    )
  })

  for (const count of [1, 2, 3, 6]) {
    it(`loads none of twelve nodes on three hosts above 1.02 with ${count} copies`, () => {
      const drawn = placement(described(nodesOnHosts(4, 4, 4)))
      const partition = 1 / (count * drawn.partitions)
      for (const { node_id } of nodesOnHosts(4, 4, 4)) {
        assert.ok(drawn.share(node_id, count) <= 1.02 / 12 + partition)
      }
    })
  }

  it("gives a small host one copy of each blob, so that no other has both", () => {
    const drawn = placement(described(nodesOnHosts(3, 1)))
    assert.equal(drawn.share("node-1-0", 2), 0.5)
    assert.ok(Math.abs(drawn.share("node-1-0", 1) - 0.25) < 0.01)
    for (const at of [0, 1, 2]) {
      assert.ok(Math.abs(drawn.share(`node-0-${at}`, 2) - 0.5 / 3) < 0.01)
    }
  })

  it("moves little more than a host's share when a host joins", () => {
    const four = placement(described(nodesOnHosts(3, 3, 3, 3)))
    const five = placement(described(nodesOnHosts(3, 3, 3, 3, 3)))
    assert.ok(moved(four, five, 1) < 1.1 / 5)
    assert.ok(moved(four, five, 3) < 1.25 / 5)
  })

  for (const count of [1, 2, 3, 6, 10]) {
    it(`loads none of ten nodes above 1.02 of the mean with ${count} copies`, () => {
      const drawn = placement(described(equalNodes(10)))
      for (const { node_id } of equalNodes(10)) {
        assert.ok(drawn.share(node_id, count) <= (1.02 * 1) / 10 + 1e-9)
      }
    })
  }

  it("loads nodes by their weight, none above 1.02 of its share", () => {
    const nodes = equalNodes(10).map((node, at) => ({
      ...node,
      weight_percent: at % 2 === 0 ? 100 : 400,
    }))
    const drawn = placement(described(nodes))
    const partition = 1 / drawn.partitions
    for (const { node_id, weight_percent } of nodes) {
      const deserved = weight_percent / 2500
      assert.ok(drawn.share(node_id, 1) <= deserved * 1.02 + partition)
      assert.ok(drawn.share(node_id, 1) >= deserved * 0.85)
    }
  })

  it("moves little more than a node's share when one joins or leaves", () => {
    const ten = placement(described(equalNodes(10)))
    const eleven = placement(described(equalNodes(11)))
    for (const [count, times] of [
      [1, 1.07],
      [3, 1.04],
    ] as const) {
      assert.ok(moved(ten, eleven, count) < times / 11, `comes, ${count}`)
      assert.ok(moved(eleven, ten, count) < (times * 11) / 10 / 11, `goes, ${count}`)
    }
  })

  it("has a partition for every identifier, including the first and the last", () => {
    const drawn = placement(described(equalNodes(3)))
    assert.equal(drawn.partitionOf(BlobId.make("0".repeat(32))), 0)
    assert.equal(drawn.partitionOf(BlobId.make("f".repeat(32))), drawn.partitions - 1)
    const half = BlobId.make("8".padEnd(32, "0"))
    assert.equal(drawn.partitionOf(half), drawn.partitions / 2)
  })

  it("has 4,096 partitions up to 40 nodes, and more for more nodes", () => {
    assert.equal(placement(described(equalNodes(40))).partitions, 4096)
    assert.equal(placement(described(equalNodes(60))).partitions, 8192)
  })

  it("without nodes has no owners", () => {
    assert.deepEqual(placement(described([])).ownersOf(0, 3), [])
  })
})
