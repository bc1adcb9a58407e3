/**
 * The checkpointer: seals the log, one range after another.
 *
 * It keeps the hash chain of unsealed commits and proposes one range at a time. Two checkpointers
 * may run: the aggregate rejects a range that does not follow, and the slower one reads again from
 * the end of the other's range.
 *
 * Source: DESIGN of the running system, 1 and 7.
 */
import { DateTime, Effect, Schema, Stream } from "effect"
import { address } from "#actors/commands.ts"
import { stateAfter } from "#actors/host.ts"
import type { Due, Process } from "#actors/process.ts"
import {
  Checkpoint,
  checkpoint_id,
  checkpoint_stream,
  firstRoot,
  isCheckpoint,
  nextRoot,
} from "#actors/system/checkpoint.ts"
import { leafOf, openTree, sealedTree, type Tree, treeUpTo, withLeaf } from "#actors/system/tree.ts"
import { type Entry, isReadable, Log } from "#events/log.ts"
import { CheckpointEvent } from "#events/system/checkpoint.ts"
import { MakeCheckpoint } from "#schemas/system/checkpoint.ts"

export interface CheckpointerOptions {
  /** `audit.checkpoint_commits`: number of commits to seal at once. */
  readonly commits: number
  /** `audit.checkpoint_seconds`: maximum time until a commit is sealed. */
  readonly seconds: number
}

/** A range that is not sealed yet. */
interface Open {
  readonly from: number
  readonly to: number
  readonly commits: number
  readonly root: string
  /** Of all commits up to `to`. */
  readonly tree: Tree
  /** Time of its first commit that is not a checkpoint, in epoch milliseconds. */
  readonly since: number | undefined
}

const sealedUpTo = ({ to, root, tree }: Pick<Open, "to" | "root" | "tree">): Open => ({
  from: to + 1,
  to,
  commits: 0,
  root,
  tree,
  since: undefined,
})

const decode = Schema.decodeUnknownSync(CheckpointEvent)

/** The last sealed range; empty at the log's beginning. */
const sealed = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(checkpoint_stream)
  if (last === undefined) return { to: 0, root: firstRoot(log.hashOf) }
  // The decider's state is a snapshot of the checkpoint's machine.
  return (yield* stateAfter(log, Checkpoint, last)).context as LastSealed
})

type LastSealed = Pick<CheckpointEvent, "to" | "root" | "tree">

/** Adds the tree. Older releases did not seal one; then it is computed from the whole log. */
const withTree = Effect.fnUntraced(function* ({ to, root, tree }: LastSealed) {
  return { to, root, tree: tree?.size === to ? openTree(tree) : yield* treeUpTo(to) }
})

const grown = (log: Log["Service"], open: Open, recorded: Entry): Open => ({
  from: open.from,
  to: recorded.position,
  commits: open.commits + 1,
  root: nextRoot(log.hashOf, open.root, recorded),
  tree: withLeaf(log.digest, open.tree, leafOf(log.digest, recorded)),
  // An unreadable entry has no time: it is sealed with the next commit.
  since:
    isCheckpoint(recorded) || !isReadable(recorded)
      ? open.since
      : (open.since ?? DateTime.toEpochMillis(DateTime.makeUnsafe(recorded.commit.at))),
})

/** After a missing position a log has no tree: `audit verify` reports it. */
const rangeOf = ({ from, to, commits, root, tree }: Open) => ({
  from,
  to,
  commits,
  root,
  ...(tree.size === to ? { tree: sealedTree(tree) } : {}),
})

const sealing = (open: Open): Due => ({
  now: [
    {
      // The same id for each attempt to seal this range, so that only one succeeds.
      command_id: `checkpoint-${open.from}`,
      cause: String(open.to),
      batch: [address(Checkpoint, checkpoint_id, MakeCheckpoint.make(rangeOf(open)))],
    },
  ],
})

/** Seals ranges when they are due. Its own commits alone do not make a range due. */
export const checkpointer = ({ commits, seconds }: CheckpointerOptions): Process => ({
  name: "system-checkpointer",
  part: "",
  from: Effect.map(sealed, ({ to }) => to),
  start: Effect.gen(function* () {
    const log = yield* Log
    let open = sealedUpTo(yield* withTree(yield* sealed))
    // The proposed range, until its checkpoint is in the log.
    let proposed: Open | undefined

    const take = (recorded: Entry) => {
      if (recorded.position > open.to) open = grown(log, open, recorded)
    }
    /** Handles a checkpoint with a different end: our range restarts after it. */
    const follow = Effect.fnUntraced(function* (event: CheckpointEvent, until: number) {
      if (event.to < (proposed?.from ?? open.from)) return
      const begin = sealedUpTo(yield* Effect.provideService(withTree(event), Log, log))
      proposed = undefined
      open = begin
      yield* log.entries("", event.to).pipe(
        Stream.takeWhile(({ position }) => position <= until),
        Stream.runForEach((recorded) => Effect.sync(() => take(recorded))),
      )
    })

    return {
      fold: Effect.fnUntraced(function* (recorded) {
        take(recorded)
        if (!isCheckpoint(recorded)) return
        for (const event of recorded.commit.events.map((event) => decode(event))) {
          if (event.to === proposed?.to && event.root === proposed.root) proposed = undefined
          else yield* follow(event, recorded.position)
        }
      }),
      skip: (entry) => Effect.sync(() => take(entry)),
      due: (now) => {
        if (proposed !== undefined) return sealing(proposed)
        if (open.since === undefined) return { now: [] }
        const at = open.since + seconds * 1000
        if (open.commits < commits && at > now) return { now: [], next: at }
        proposed = open
        open = sealedUpTo(open)
        return sealing(proposed)
      },
    }
  }),
})
