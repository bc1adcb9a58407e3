/** Unreadable entries of the log. Source: decisions 0182 and 0189. */
import { Effect, Schema, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { stateAfter } from "#actors/host.ts"
import { Quarantine, quarantine_id } from "#actors/system/acknowledgement.ts"
import { isReadable, Log, type Origin } from "#events/log.ts"
import { quarantine_stream } from "#events/system/quarantine.ts"
import { AcknowledgeUnreadable } from "#schemas/system/quarantine.ts"

export interface UnreadableCommit {
  readonly position: number
  readonly stream: string
  readonly hash: string
  readonly reason: string
  readonly acknowledged: boolean
}

/** The result of a scan of the whole log. */
export interface QuarantineReport {
  /** Number of scanned entries, and of unreadable ones. */
  readonly entries: number
  readonly count: number
  /** Number of unreadable entries that no operator has acknowledged. */
  readonly open: number
  /** The first unreadable entries; those that are not acknowledged come first. */
  readonly first: ReadonlyArray<UnreadableCommit>
}

/** The position up to which unreadable commits are acknowledged; 0 if none is. */
export const acknowledgedThrough = Effect.gen(function* () {
  const log = yield* Log
  const last = yield* log.load(quarantine_stream)
  if (last === undefined) return 0
  const { context } = yield* stateAfter(log, Quarantine, last)
  return context.through
})

/** Scans the log once; lists the first `limit` unreadable entries and counts all. */
export const scanQuarantine = Effect.fnUntraced(function* (limit: number) {
  const log = yield* Log
  const through = yield* acknowledgedThrough
  const known: Array<UnreadableCommit> = []
  const unacknowledged: Array<UnreadableCommit> = []
  let entries = 0
  let count = 0
  let open = 0
  yield* Stream.runForEachArray(log.entries(""), (chunk) =>
    Effect.sync(() => {
      for (const entry of chunk) {
        entries++
        if (isReadable(entry)) continue
        const { position, stream, hash, unreadable: reason } = entry
        const acknowledged = position <= through
        count++
        if (!acknowledged) open++
        const list = acknowledged ? known : unacknowledged
        if (list.length < limit) list.push({ position, stream, hash, reason, acknowledged })
      }
    }),
  )
  return {
    entries,
    count,
    open,
    first: [...unacknowledged, ...known].slice(0, limit),
  } satisfies QuarantineReport
})

/** No unreadable commit needs an acknowledgement. */
export class NothingToAcknowledge extends Schema.TaggedError<NothingToAcknowledge>()(
  "NothingToAcknowledge",
  { message: Schema.String },
) {}

/** Records that an operator acknowledges every unreadable commit up to the log's end. */
export const acknowledge = Effect.fnUntraced(function* (
  origin: Omit<Origin, "fingerprint">,
  reason: string,
) {
  const through = yield* (yield* Log).end
  const { open: commits } = yield* scanQuarantine(0)
  if (commits === 0) {
    return yield* new NothingToAcknowledge({
      message: "All commits are readable or already acknowledged: nothing was changed.",
    })
  }
  const command = AcknowledgeUnreadable.make({ through, commits, reason })
  yield* (yield* Commands).send(origin, address(Quarantine, quarantine_id, command))
  return { through, commits }
})
