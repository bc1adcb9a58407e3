import { assert, describe, it } from "@effect/vitest"
import {
  consistency,
  empty_tree,
  hexOf,
  inclusion,
  leafOf,
  makeRootCollector,
  makeTreeBuilder,
  openTree,
  peaksOf,
  type Range,
  rootOf,
  sealedTree,
} from "#actors/system/tree.ts"
import { digest, sha256 } from "#journal"

/** RFC 9162 section 2.1.1, recomputed over all leaves on each call. */
const naiveRoot = (leaves: ReadonlyArray<Uint8Array>): Uint8Array => {
  if (leaves.length === 0) return digest(new Uint8Array())
  const [only] = leaves
  if (leaves.length === 1 && only !== undefined) return only
  let half = 1
  while (half * 2 < leaves.length) half *= 2
  return node(naiveRoot(leaves.slice(0, half)), naiveRoot(leaves.slice(half)))
}

const node = (left: Uint8Array, right: Uint8Array) =>
  digest(Buffer.concat([Uint8Array.of(1), left, right]))

const sizes_max = 40
const leaves = Array.from({ length: sizes_max }, (_, i) =>
  leafOf(digest, { position: i + 1, stream: "test.counter.a", hash: sha256(`${i}`) }),
)

/** The tree of the first leaves, and the roots of ranges of them. */
const grownTo = (size: number, ranges: ReadonlyArray<Range> = []) => {
  const gathered = makeRootCollector(digest, ranges)
  const growth = makeTreeBuilder(digest, empty_tree, gathered.collect)
  for (const leaf of leaves.slice(0, size)) growth.add(leaf)
  return { tree: growth.tree(), roots: ranges.map(gathered.rootOf) }
}

describe("the tree over the log", () => {
  it("has the leaf of RFC 9162, over a commit's position, stream and hash", () => {
    const one = { position: 7, stream: "test.counter.a", hash: "c".repeat(64) }
    const text = `\u0000${one.position} ${one.stream} ${one.hash}`
    assert.equal(hexOf(leafOf(digest, one)), sha256(text))
  })

  it("has the root of RFC 9162, and one peak per set bit of its size", () => {
    for (let size = 0; size <= sizes_max; size++) {
      const { tree } = grownTo(size)
      assert.equal(hexOf(rootOf(digest, tree)), hexOf(naiveRoot(leaves.slice(0, size))))
      assert.equal(tree.peaks.length, peaksOf(size))
    }
  })

  it("continues from the tree in a checkpoint", () => {
    for (let size = 0; size < sizes_max; size++) {
      const growth = makeTreeBuilder(digest, openTree(sealedTree(grownTo(size).tree)))
      for (const leaf of leaves.slice(size)) growth.add(leaf)
      assert.deepEqual(sealedTree(growth.tree()), sealedTree(grownTo(sizes_max).tree))
    }
  })

  it("counts peaks beyond 32 bits", () => {
    assert.equal(peaksOf(2 ** 40 + 5), 3)
  })

  it("shows each leaf by a path to the root", () => {
    for (const size of [1, 2, 3, 7, 8, 9, 31, sizes_max]) {
      for (let index = 0; index < size; index++) {
        const ranges = inclusion(index, size)
        const { tree, roots } = grownTo(size, ranges)
        assert.isAtMost(ranges.length, Math.ceil(Math.log2(size)))
        let root = leaves[index] ?? new Uint8Array()
        for (const [i, range] of ranges.entries()) {
          const other = roots[i] ?? new Uint8Array()
          root = range.from > index ? node(root, other) : node(other, root)
        }
        assert.equal(hexOf(root), hexOf(rootOf(digest, tree)))
      }
    }
  })

  it("shows that a smaller tree is its beginning, by parts that make both roots", () => {
    for (let size = 1; size <= sizes_max; size++) {
      for (let before = 1; before <= size; before++) {
        const ranges = consistency(before, size)
        const { roots } = grownTo(size, ranges)
        for (const [i, { from, to }] of ranges.entries()) {
          const naive = naiveRoot(leaves.slice(from, to))
          assert.equal(hexOf(roots[i] ?? new Uint8Array()), hexOf(naive))
        }
        // The ranges within the smaller tree cover all of it, except when its root is already
        // known.
        const covered = ranges.filter(({ to }) => to <= before)
        const width = covered.reduce((sum, { from, to }) => sum + to - from, 0)
        assert.include([0, before], width)
        const beyond = ranges.filter(({ from }) => from >= before)
        assert.equal(
          beyond.reduce((sum, { from, to }) => sum + to - from, 0),
          size - before,
        )
      }
    }
  })

  it("does not answer for leaves that have not come", () => {
    const gathered = makeRootCollector(digest, [{ from: 0, to: 4 }])
    assert.throws(() => gathered.rootOf({ from: 0, to: 4 }), /are missing/)
  })
})
