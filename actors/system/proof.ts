/**
 * The proof that an aggregate's commits are in the log, for auditors who trust only a signed head.
 *
 * It contains the commits, their paths to the root of the checkpoint that covers them, and the path
 * from there to the newest head. `docs/examples/verify-proof.py` checks it independently.
 */
import { Effect, Schema, Stream } from "effect"
import { headOf, Notary, newestTree, type SealedAt, sealedTrees } from "#actors/system/notary.ts"
import {
  consistency,
  empty_tree,
  hexOf,
  inclusion,
  leafOf,
  makeRootCollector,
  makeTreeBuilder,
  openTree,
  type Range,
  rootOf,
  type Tree,
} from "#actors/system/tree.ts"
import { type Entry, isReadable, Log, type LogUnavailable } from "#events/log.ts"
import { base64Of, textOf } from "#events/log-line.ts"
import type { AuditProof } from "#schemas/system/audit.ts"

/** Maximum number of commits in a proof, at about 1 KB each; `--at` makes it shorter. */
const commits_max = 10_000

export interface ProofRequest {
  /** `<service>.<aggregate>.<id>`. */
  readonly stream: string
  /** The last position to prove; by default the aggregate's last. */
  readonly at?: number | undefined
  /** Size of an earlier head that the caller kept: it is proven to be a prefix of the newest. */
  readonly kept?: number | undefined
}

/** The proof is impossible; the message has the reason and a remedy. */
export class NoProof extends Schema.TaggedError<NoProof>()("NoProof", {
  message: Schema.String,
}) {}

const refuse = (message: string) => Effect.fail(new NoProof({ message }))

/** The aggregate's commits up to a position. */
const commitsOf = Effect.fnUntraced(function* ({
  stream,
  at = Number.MAX_SAFE_INTEGER,
}: ProofRequest) {
  const log = yield* Log
  const commits = yield* log.entries(stream).pipe(
    Stream.takeWhile(({ position }) => position <= at),
    Stream.take(commits_max + 1),
    Stream.runCollect,
  )
  if (commits.length === 0)
    return yield* refuse(`The log had no commits of ${stream} at that time.`)
  if (commits.length > commits_max) {
    const last = commits.at(commits_max - 1)?.position
    return yield* refuse(`${stream} has more than ${commits_max} commits: use --at ${last}.`)
  }
  return commits
})

/** The stored entry: a commit's text, which must match its hash, or unreadable bytes in base64. */
const storedOf = (
  log: Log["Service"],
  entry: Entry,
): Effect.Effect<Pick<AuditProof["commits"][number], "commit" | "unreadable">, NoProof> => {
  if (!isReadable(entry)) {
    return Effect.succeed({ commit: "", unreadable: base64Of(entry.bytes) })
  }
  const commit = textOf(entry)
  if (log.hashOf(commit) === entry.hash) return Effect.succeed({ commit })
  return refuse(`The commit at ${entry.position} does not match its hash.`)
}

/** The roots of some ranges of the newest tree's leaves, read from the log once. */
const rootsOf = Effect.fnUntraced(function* (newest: Tree, ranges: ReadonlyArray<Range>) {
  const log = yield* Log
  const collector = makeRootCollector(log.digest, ranges)
  const growth = makeTreeBuilder(log.digest, empty_tree, collector.collect)
  yield* log.entries("").pipe(
    Stream.takeWhile(({ position }) => position <= newest.size),
    Stream.runForEach((recorded) => Effect.sync(() => growth.add(leafOf(log.digest, recorded)))),
  )
  const found = hexOf(rootOf(log.digest, growth.tree()))
  if (growth.tree().size === newest.size && found === hexOf(rootOf(log.digest, newest))) {
    return collector.rootOf
  }
  return yield* refuse("The log does not match its checkpoints: run `almanac audit verify`.")
})

const covering = Effect.fnUntraced(function* (position: number, newest: Tree) {
  const found = yield* sealedTrees(position).pipe(
    Stream.filter(({ tree }) => tree.size >= position && tree.size <= newest.size),
    Stream.take(1),
    Stream.runCollect,
  )
  const [first] = found
  if (first !== undefined) return first
  return yield* refuse(
    `The commit at ${position} is not sealed yet: retry after audit.checkpoint_seconds.`,
  )
})

/** The ranges whose roots the proof contains. */
const rangesOf = (
  commits: ReadonlyArray<Entry>,
  { tree }: SealedAt,
  size: number,
  kept: number | undefined,
) => ({
  paths: commits.map(({ position }) => inclusion(position - 1, tree.size)),
  forward: consistency(tree.size, size),
  since: kept === undefined ? undefined : consistency(kept, size),
})

/** Proves an aggregate's commits. Fails with NoProof if none exist or some are not sealed. */
export const prove = Effect.fnUntraced(function* (
  request: ProofRequest,
): Effect.fn.Return<AuditProof, NoProof | LogUnavailable, Log | Notary> {
  const log = yield* Log
  const notary = yield* Notary
  const commits = yield* commitsOf(request)
  const newest = yield* newestTree
  if (newest === undefined) return yield* refuse("No commits are sealed in a tree yet.")
  const { kept } = request
  if (kept !== undefined && (kept < 1 || kept > newest.size)) {
    return yield* refuse(`The stored head has ${kept} commits, the newest one ${newest.size}.`)
  }
  const checkpoint = yield* covering(commits.at(-1)?.position ?? 0, newest)
  const { paths, forward, since } = rangesOf(commits, checkpoint, newest.size, kept)
  const rootAt = yield* rootsOf(newest, [...paths.flat(), ...forward, ...(since ?? [])])
  const hashesOf = (ranges: ReadonlyArray<Range>) => ranges.map((range) => hexOf(rootAt(range)))
  const stored = yield* Effect.forEach(commits, (commit) => storedOf(log, commit))
  return {
    format: "almanac-audit-proof-1",
    aggregate: request.stream,
    commits: commits.map(({ position }, i) => ({
      position,
      ...(stored[i] ?? { commit: "" }),
      path: hashesOf(paths[i] ?? []),
    })),
    checkpoint: {
      size: checkpoint.tree.size,
      root: hexOf(rootOf(log.digest, openTree(checkpoint.tree))),
    },
    consistency: hashesOf(forward),
    ...(since === undefined || kept === undefined
      ? {}
      : { kept: { size: kept, path: hashesOf(since) } }),
    head: notary.sign(headOf(log, newest)),
    key: notary.key.verifier,
  }
})
