/**
 * The checkpointer: seals the log, stretch after stretch.
 *
 * It keeps the chain of what is not sealed yet, and proposes one stretch at a time. Two of them
 * may run: the aggregate refuses a stretch that does not follow, and the slower one reads again
 * from where the other's ends.
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
import { Log, type Recorded } from "#events/log.ts"
import { CheckpointEvent } from "#events/system/checkpoint.ts"
import { MakeCheckpoint } from "#schemas/system/checkpoint.ts"

export interface CheckpointerOptions {
  /** `audit.checkpoint_commits`: as many commits are sealed at once. */
  readonly commits: number
  /** `audit.checkpoint_seconds`: no commit waits longer than this to be sealed. */
  readonly seconds: number
}

/** A stretch that is not sealed yet. */
interface Open {
  readonly from: number
  readonly to: number
  readonly commits: number
  readonly root: string
  /** When the first commit in it that is no checkpoint was made, as epoch milliseconds. */
  readonly since: number | undefined
}

const sealedUpTo = (to: number, root: string): Open => ({
  from: to + 1,
  to,
  commits: 0,
  root,
  since: undefined,
})

const decode = Schema.decodeUnknownSync(CheckpointEvent)

const sealed = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(checkpoint_stream)
  if (last === undefined) return { to: 0, root: firstRoot(log.genesis) }
  // The decider's state is a snapshot of the checkpoint's machine.
  const { to, root } = (yield* stateAfter(log, Checkpoint, last)).context as {
    readonly to: number
    readonly root: string
  }
  return { to, root }
})

const grown = (hash: (text: string) => string, open: Open, recorded: Recorded): Open => ({
  from: open.from,
  to: recorded.position,
  commits: open.commits + 1,
  root: nextRoot(hash, open.root, recorded),
  since: isCheckpoint(recorded)
    ? open.since
    : (open.since ?? DateTime.toEpochMillis(DateTime.makeUnsafe(recorded.commit.at))),
})

const sealing = ({ from, to, commits, root }: Open): Due => ({
  now: [
    {
      // The same for each try to seal what follows the last checkpoint: only one can happen.
      command_id: `checkpoint-${from}`,
      cause: String(to),
      batch: [address(Checkpoint, checkpoint_id, MakeCheckpoint.make({ from, to, commits, root }))],
    },
  ],
})

/** Seals what is due, for as long as it runs; for its own commits alone it seals nothing. */
export const checkpointer = ({ commits, seconds }: CheckpointerOptions): Process => ({
  name: "system-checkpointer",
  part: "",
  from: Effect.map(sealed, ({ to }) => to),
  start: Effect.gen(function* () {
    const log = yield* Log
    const { to, root } = yield* sealed
    let open = sealedUpTo(to, root)
    // The stretch that was proposed; the log has not shown it sealed yet.
    let proposed: Open | undefined

    const take = (recorded: Recorded) => {
      if (recorded.position > open.to) open = grown(log.genesis, open, recorded)
    }
    /** Another checkpointer's stretch ends elsewhere than ours: ours begins anew after it. */
    const follow = (event: CheckpointEvent, until: number) => {
      if (event.to < (proposed?.from ?? open.from)) return Effect.void
      proposed = undefined
      open = sealedUpTo(event.to, event.root)
      return log.read("", event.to).pipe(
        Stream.takeWhile(({ position }) => position <= until),
        Stream.runForEach((recorded) => Effect.sync(() => take(recorded))),
      )
    }

    return {
      fold: Effect.fnUntraced(function* (recorded) {
        take(recorded)
        if (!isCheckpoint(recorded)) return
        for (const event of recorded.commit.events.map((event) => decode(event))) {
          if (event.to === proposed?.to && event.root === proposed.root) proposed = undefined
          else yield* follow(event, recorded.position)
        }
      }),
      due: (now) => {
        if (proposed !== undefined) return sealing(proposed)
        if (open.since === undefined) return { now: [] }
        const at = open.since + seconds * 1000
        if (open.commits < commits && at > now) return { now: [], next: at }
        proposed = open
        open = sealedUpTo(open.to, open.root)
        return sealing(proposed)
      },
    }
  }),
})
