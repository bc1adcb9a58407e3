/**
 * The notary: signs heads of the log with the key of this installation.
 *
 * A signed head has the format of a transparency log checkpoint, so that existing tools can read
 * it: the log's name, its size, its root in base64, a blank line, and the signature. An auditor who
 * keeps one can verify later that the log still starts with the same commits.
 *
 * Source: C2SP tlog-checkpoint and signed-note; RFC 8032 for the signature.
 */
import { Context, Effect, Stream } from "effect"
import { checkpoint_stream } from "#actors/system/checkpoint.ts"
import { openTree, rootOf, type Tree } from "#actors/system/tree.ts"
import { Log, type LogUnavailable } from "#events/log.ts"
import type { AuditKey } from "#schemas/system/audit.ts"
import type { SealedTree } from "#schemas/system/checkpoint.ts"

/** The log's size and the root of its tree (32 bytes) at some time. */
export interface Head {
  readonly size: number
  readonly root: Uint8Array
}

/** Incremental SHA-256. */
export interface Hashing {
  readonly add: (text: string) => void
  /** In hex; nothing can be added afterwards. */
  readonly end: () => string
}

export class Notary extends Context.Service<
  Notary,
  {
    readonly key: AuditKey
    /** The head as a signed note. */
    readonly sign: (head: Head) => string
    readonly hashing: () => Hashing
  }
>()("actors/system/Notary") {}

/** A checkpoint with a tree, and its position. */
export interface SealedAt {
  readonly position: number
  readonly tree: SealedTree
}

/** The checkpoints with a tree after `position`, oldest first. */
export const sealedTrees = (position = 0): Stream.Stream<SealedAt, LogUnavailable, Log> =>
  Stream.unwrap(Effect.map(Log, (log) => log.read(checkpoint_stream, position))).pipe(
    Stream.flatMap(({ position, commit }) =>
      Stream.fromIterable(
        commit.events.flatMap((event) => {
          // Of a checkpoint's commit, by its schema.
          const { tree } = event as { readonly tree?: SealedTree }
          return tree === undefined ? [] : [{ position, tree }]
        }),
      ),
    ),
  )

export const headOf = (log: Log["Service"], tree: Tree): Head => ({
  size: tree.size,
  root: rootOf(log.digest, tree),
})

/** The newest sealed tree; undefined if there is none, or an older release sealed it. */
export const newestTree = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(checkpoint_stream)
  if (last === undefined) return undefined
  // The snapshot of a checkpoint, by its chart.
  const { tree } = last.commit.snapshot.context as { readonly tree?: SealedTree }
  return tree === undefined ? undefined : openTree(tree)
})

/** The newest head, signed; undefined if there is none. */
export const signedHead = Effect.gen(function* () {
  const log = yield* Log
  const notary = yield* Notary
  const tree = yield* newestTree
  return tree === undefined ? undefined : notary.sign(headOf(log, tree))
})
