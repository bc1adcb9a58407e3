import { assert, describe, it } from "@effect/vitest"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  placeOfBlob,
  placeOfPoint,
  pointsOf,
  type RingDescription,
  type RingNode,
  ring,
  weightPercent,
} from "../placement.ts"

/** A small seeded generator (mulberry32): 0 to 1, the same for the same seed. */
const generator = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    const twice = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((twice ^ (twice >>> 14)) >>> 0) / 2 ** 32
  }
}

const hexDigit = (random: () => number) => Math.floor(random() * 16).toString(16)
const blobId = (random: () => number) =>
  BlobId.make(Array.from({ length: 32 }, () => hexDigit(random)).join(""))

const even = (count: number, prefix = "node"): ReadonlyArray<RingNode> =>
  Array.from({ length: count }, (_, i) => ({ node_id: `${prefix}-${i + 1}`, weight_percent: 100 }))

const described = (nodes: ReadonlyArray<RingNode>, vnodes_per_node = 128): RingDescription => ({
  ring_version: 1,
  vnodes_per_node,
  nodes,
})

/** The same ring without sorting or searching: repeatedly takes the nearest point ahead. */
const naiveOwners = ({ nodes, vnodes_per_node }: RingDescription, id: BlobId, count: number) => {
  const start = placeOfBlob(id)
  const ahead = nodes.flatMap((node) =>
    Array.from({ length: pointsOf(node, vnodes_per_node) }, (_, n) => {
      const distance = placeOfPoint(node.node_id, n) - start
      return { node_id: node.node_id, distance: distance < 0 ? distance + 2 ** 52 : distance }
    }),
  )
  const owners: Array<string> = []
  while (owners.length < count) {
    const left = ahead.filter(({ node_id }) => !owners.includes(node_id))
    if (left.length === 0) return owners
    owners.push(left.reduce((a, b) => (b.distance < a.distance ? b : a)).node_id)
  }
  return owners
}

const shares = (description: RingDescription) => {
  const drawn = ring(description)
  return drawn.node_ids.map((node_id) => drawn.share(node_id))
}

const seeds = Array.from({ length: 20 }, (_, i) => i + 1)
const mean = (values: ReadonlyArray<number>) =>
  values.reduce((sum, value) => sum + value, 0) / values.length
const median = (values: ReadonlyArray<number>) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

describe("the ring", () => {
  for (const seed of seeds) {
    it(`has the same owners as a naive ring (seed ${seed})`, () => {
      const random = generator(seed)
      const weights = [0, 25, 71, 100, 100, 238, 1600]
      const nodes = Array.from({ length: Math.floor(random() * 9) }, (_, i) => ({
        node_id: `n${i}-${Math.floor(random() * 1000)}`,
        weight_percent: weights[Math.floor(random() * weights.length)] ?? 100,
      }))
      const description = described(nodes, 1 + Math.floor(random() * 16))
      const drawn = ring(description)
      for (let i = 0; i < 50; i++) {
        const id = blobId(random)
        const count = Math.floor(random() * 11)
        assert.deepEqual(drawn.owners(id, count), naiveOwners(description, id, count))
      }
    })
  }

  it("continues from its last point to its first", () => {
    const description = described(even(3), 4)
    for (const id of ["f".repeat(32), "0".repeat(32)].map((hex) => BlobId.make(hex))) {
      assert.deepEqual(ring(description).owners(id, 3), naiveOwners(description, id, 3))
    }
  })

  it("has no owners without nodes, or without capacity", () => {
    const id = blobId(generator(1))
    assert.deepEqual(ring(described([])).owners(id, 3), [])
    assert.deepEqual(ring(described([{ node_id: "a", weight_percent: 0 }])).owners(id, 3), [])
    assert.equal(ring(described([])).share("a"), 0)
  })

  it("does not depend on the order of its nodes", () => {
    const nodes = even(7)
    const [one, other] = [ring(described(nodes)), ring(described([...nodes].reverse()))]
    const random = generator(3)
    for (let i = 0; i < 200; i++) {
      const id = blobId(random)
      assert.deepEqual(one.owners(id, 3), other.owners(id, 3))
    }
    assert.deepEqual(one.node_ids, other.node_ids)
  })

  it("never changes: the first version computed these owners", () => {
    const drawn = ring(described(even(6)))
    const ids = ["0123456789abcdef", "fedcba9876543210", "00000000deadbeef"]
    const owners = ids.map((half) => drawn.owners(BlobId.make(half + half), 3).join(" "))
    assert.deepEqual(owners, [
      "node-1 node-5 node-4",
      "node-5 node-6 node-1",
      "node-1 node-6 node-3",
    ])
  })

  it("has shares that match the frequencies of first owners and sum to 1", () => {
    const nodes = [...even(4), { node_id: "large", weight_percent: 400 }]
    const drawn = ring(described(nodes))
    const random = generator(5)
    const samples = 40_000
    const frequencies = new Map<string, number>()
    for (let i = 0; i < samples; i++) {
      const [owner = ""] = drawn.owners(blobId(random), 1)
      frequencies.set(owner, (frequencies.get(owner) ?? 0) + 1)
    }
    // Five standard deviations of a binomial count.
    const error_max = 5 * Math.sqrt(0.25 / samples)
    for (const { node_id } of nodes) {
      assert.closeTo((frequencies.get(node_id) ?? 0) / samples, drawn.share(node_id), error_max)
    }
    assert.closeTo(
      shares(described(nodes)).reduce((sum, share) => sum + share, 0),
      1,
      1e-9,
    )
  })
})

describe("the ring's balance", () => {
  it("is within the measured figures for 10 nodes of 128 points", () => {
    const rings = seeds.map((seed) => shares(described(even(10, `s${seed}`))))
    const over = rings.map((ring) => Math.max(...ring) / mean(ring))
    const deviations = rings.map((ring) => Math.sqrt(mean(ring.map((x) => (x * 10 - 1) ** 2))))
    // Measured: largest share 1.14 of the mean, deviation 0.07 to 0.10.
    assert.isBelow(median(over), 1.2)
    assert.isBelow(Math.max(...over), 1.4)
    assert.isBelow(median(deviations), 0.11)
  })

  it("is within the measured figures for 1000 nodes of 128 points", () => {
    const ring = shares(described(even(1000)))
    assert.isBelow(Math.max(...ring) / mean(ring), 1.4)
    assert.isBelow(Math.sqrt(mean(ring.map((share) => (share * 1000 - 1) ** 2))), 0.11)
  })

  it("follows the weights", () => {
    for (const seed of seeds) {
      const small = even(5, `small${seed}`)
      const large = even(5, `large${seed}`).map((node) => ({ ...node, weight_percent: 400 }))
      const drawn = ring(described([...small, ...large]))
      const held = large.reduce((sum, { node_id }) => sum + drawn.share(node_id), 0)
      assert.closeTo(held, 0.8, 0.06, `seed ${seed}`)
    }
  })

  it("spreads the points of similar names evenly", () => {
    const cells = 256
    const counts = new Array<number>(cells).fill(0)
    const names = even(48).map(({ node_id }) => node_id)
    for (const name of names) {
      for (let n = 0; n < 128; n++) {
        const cell = Math.floor(placeOfPoint(name, n) / 2 ** 44)
        counts[cell] = (counts[cell] ?? 0) + 1
      }
    }
    const expected = (names.length * 128) / cells
    const chi_squared = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    // 255 degrees of freedom: mean 255, deviation 22.6; five of them on either side.
    assert.isBelow(chi_squared, 368)
    assert.isAbove(chi_squared, 142)
  })

  it("has no two points in the same place", () => {
    const places = new Set<number>()
    for (const { node_id } of even(48)) {
      for (let n = 0; n < 2048; n++) places.add(placeOfPoint(node_id, n))
    }
    assert.equal(places.size, 48 * 2048)
    for (const place of places) assert.isTrue(place >= 0 && place < 2 ** 52)
  })
})

describe("the ring's movement", () => {
  it("is only to a node that joins", () => {
    const moved = seeds.map((seed) => {
      const before = even(10, `s${seed}`)
      const joined = { node_id: `new${seed}`, weight_percent: 100 }
      const [old, young] = [ring(described(before)), ring(described([...before, joined]))]
      const random = generator(seed)
      for (let i = 0; i < 500; i++) {
        const id = blobId(random)
        const [before_owner, is] = [old.owners(id, 1), young.owners(id, 1)]
        if (before_owner[0] !== is[0]) assert.deepEqual(is, [joined.node_id])
      }
      return young.share(joined.node_id)
    })
    // Ideal: one eleventh, 9.09%; measured 10.2% for one cluster.
    assert.closeTo(mean(moved), 1 / 11, 0.01)
    assert.isBelow(Math.max(...moved), 0.125)
    assert.isAbove(Math.min(...moved), 0.06)
  })

  it("is only from a node that leaves, for every owner's position", () => {
    const nodes = even(8)
    const [old, young] = [ring(described(nodes)), ring(described(nodes.slice(1)))]
    const random = generator(11)
    for (let i = 0; i < 500; i++) {
      const id = blobId(random)
      const stayed = old.owners(id, 4).filter((node_id) => node_id !== "node-1")
      assert.deepEqual(young.owners(id, 4).slice(0, stayed.length), stayed)
    }
  })
})

describe("a node's weight", () => {
  it("is 100 percent at the unit, and doubles with the capacity", () => {
    assert.equal(weightPercent("1000", "1000"), 100)
    assert.equal(weightPercent("2000", "1000"), 200)
    assert.equal(weightPercent("250", "1000"), 25)
  })

  it("is constant for capacities within a few per cent", () => {
    assert.equal(weightPercent("1080", "1000"), 100)
    assert.equal(weightPercent("925", "1000"), 100)
    assert.equal(weightPercent("1100", "1000"), 119)
  })

  it("is bounded on both sides, and 0 without capacity", () => {
    assert.equal(weightPercent("18446744073709551615", "1"), 1600)
    assert.equal(weightPercent("1", "18446744073709551615"), 6)
    assert.equal(weightPercent("0", "1000"), 0)
  })

  it("gives a node with any capacity at least one point", () => {
    assert.equal(pointsOf({ node_id: "a", weight_percent: 6 }, 1), 1)
    assert.equal(pointsOf({ node_id: "a", weight_percent: 1600 }, 1024), 16_384)
  })
})
