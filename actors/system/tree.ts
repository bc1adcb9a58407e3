/**
 * A Merkle tree over the log. It proves that a commit is in the log without the other commits.
 *
 * It is the tree of RFC 9162 (and RFC 6962) with SHA-256. The leaf of a commit is the text
 * `<position> <stream> <hash>`. Positions have no gaps, so the tree of all commits up to a position
 * has that number of leaves.
 *
 * Source: RFC 9162, section 2.1.
 */
import { Effect, Schema, Stream } from "effect"
import { Log, type Recorded } from "#events/log.ts"
import type { SealedTree } from "#schemas/system/checkpoint.ts"

/** SHA-256, from bytes to 32 bytes. */
export type Digest = (data: Uint8Array) => Uint8Array

/**
 * The state that a tree needs to grow: the roots of its perfect subtrees, largest first. Their
 * number is the number of set bits in its size.
 */
export interface Tree {
  readonly size: number
  readonly peaks: ReadonlyArray<Uint8Array>
}

/** A half-open range of leaves, counted from 0. */
export interface Range {
  readonly from: number
  readonly to: number
}

const leaf_mark = Uint8Array.of(0)
const node_mark = Uint8Array.of(1)
const text = new TextEncoder()

const joined = (...parts: ReadonlyArray<Uint8Array>) => {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** The hash of a commit's leaf. */
export const leafOf = (
  digest: Digest,
  { position, stream, hash }: Pick<Recorded, "position" | "stream" | "hash">,
) => digest(joined(leaf_mark, text.encode(`${position} ${stream} ${hash}`)))

const parentOf = (digest: Digest, left: Uint8Array, right: Uint8Array) =>
  digest(joined(node_mark, left, right))

export const empty_tree: Tree = { size: 0, peaks: [] }

/** The number of peaks of a tree of `size` leaves. Sizes may exceed 32 bits. */
export const peaksOf = (size: number): number =>
  size === 0 ? 0 : (size % 2) + peaksOf(Math.floor(size / 2))

/** The tree's root; for an empty tree, the hash of the empty string. */
export const rootOf = (digest: Digest, { peaks }: Tree) => {
  let root = peaks.at(-1)
  if (root === undefined) return digest(new Uint8Array())
  for (const peak of peaks.slice(0, -1).reverse()) root = parentOf(digest, peak, root)
  return root
}

/** A tree that grows by leaves; it calls `onSubtree` for each completed perfect subtree. */
export const makeTreeBuilder = (
  digest: Digest,
  from: Tree,
  onSubtree: (range: Range, root: Uint8Array) => void = () => {},
) => {
  const peaks = [...from.peaks]
  let { size } = from
  return {
    add: (leaf: Uint8Array) => {
      let root = leaf
      let width = 1
      onSubtree({ from: size, to: size + 1 }, root)
      // Each peak of the same width becomes the left half of the new subtree.
      for (let rest = size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
        root = parentOf(digest, peaks.pop() ?? root, root)
        width *= 2
        onSubtree({ from: size + 1 - width, to: size + 1 }, root)
      }
      peaks.push(root)
      size++
    },
    tree: (): Tree => ({ size, peaks: [...peaks] }),
  }
}

/** The tree with one more leaf. */
export const withLeaf = (digest: Digest, tree: Tree, leaf: Uint8Array): Tree => {
  const growth = makeTreeBuilder(digest, tree)
  growth.add(leaf)
  return growth.tree()
}

/** The largest power of two that is smaller than `width`, which is 2 or more. */
const halfOf = (width: number) => {
  let half = 1
  while (half * 2 < width) half *= 2
  return half
}

const whole = (size: number): Range => ({ from: 0, to: size })

const halves = ({ from, to }: Range) => {
  const middle = from + halfOf(to - from)
  return { middle, left: { from, to: middle }, right: { from: middle, to } }
}

/** The inclusion path: ranges whose roots lead from leaf `index` to the root of `size` leaves. */
export const inclusion = (index: number, size: number, range = whole(size)): Array<Range> => {
  if (range.to - range.from === 1) return []
  const { middle, left, right } = halves(range)
  return index < middle
    ? [...inclusion(index, size, left), right]
    : [...inclusion(index, size, right), left]
}

/**
 * The consistency path: ranges whose roots prove that the tree of the first `before` leaves (1 or
 * more) is a prefix of the tree of `size` leaves.
 */
export const consistency = (before: number, size: number): Array<Range> => {
  const inner = (range: Range, is_old_root: boolean): Array<Range> => {
    if (range.to === before) return is_old_root ? [] : [range]
    const { middle, left, right } = halves(range)
    return before <= middle ? [...inner(left, is_old_root), right] : [...inner(right, false), left]
  }
  return inner(whole(size), true)
}

/** 32 bytes in hex, as in the log and in proofs. */
export const hexOf = Schema.encodeSync(Schema.Uint8ArrayFromHex)
const ofHex = Schema.decodeSync(Schema.Uint8ArrayFromHex)

/** Converts between a tree and its form in checkpoints. */
export const sealedTree = ({ size, peaks }: Tree): SealedTree => ({
  size,
  peaks: peaks.map((peak) => hexOf(peak)),
})
export const openTree = ({ size, peaks }: SealedTree): Tree => ({
  size,
  peaks: peaks.map((peak) => ofHex(peak)),
})

/**
 * The tree of all commits up to `to`, read from the log, starting from the smaller tree `known`. It
 * ends before the first missing position.
 */
export const treeUpTo = Effect.fnUntraced(function* (to: number, known: Tree = empty_tree) {
  const log = yield* Log
  const growth = makeTreeBuilder(log.digest, known)
  let next = known.size + 1
  yield* log.entries("", known.size).pipe(
    Stream.takeWhile(({ position }) => position === next++ && position <= to),
    Stream.runForEach((recorded) => Effect.sync(() => growth.add(leafOf(log.digest, recorded)))),
  )
  return growth.tree()
})

const keyOf = ({ from, to }: Range) => `${from}-${to}`

const isPerfect = ({ from, to }: Range) => Number.isInteger(Math.log2(to - from))

/**
 * Collects the roots of some ranges while a tree grows. Pass `collect` to `makeTreeBuilder`; call
 * `rootOf` after all leaves were added. It throws for ranges that were not requested.
 */
export const makeRootCollector = (digest: Digest, ranges: ReadonlyArray<Range>) => {
  const roots = new Map<string, Uint8Array | undefined>()
  const request = (range: Range) => {
    if (isPerfect(range)) return void roots.set(keyOf(range), undefined)
    const { left, right } = halves(range)
    request(left)
    request(right)
  }
  for (const range of ranges) request(range)

  const find = (range: Range): Uint8Array => {
    const known = roots.get(keyOf(range))
    if (known !== undefined) return known
    if (isPerfect(range)) throw new Error(`The leaves ${keyOf(range)} are missing.`)
    const { left, right } = halves(range)
    return parentOf(digest, find(left), find(right))
  }
  return {
    collect: (range: Range, root: Uint8Array) => {
      const key = keyOf(range)
      if (roots.has(key)) roots.set(key, root)
    },
    rootOf: find,
  }
}
