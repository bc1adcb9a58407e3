/**
 * The journal's process: takes the facts of this node's blob store into the log, in order.
 *
 * It keeps nothing. The cursor is in the log, and the aggregate refuses facts that do not follow
 * it; the store forgets a fact only after the log has it. So a kill loses none and doubles none.
 *
 * Source: DESIGN of the running system, "The exception: bytes".
 */
import { Clock, DateTime, Effect, Schedule, Schema } from "effect"
import { type BlobFact, Blobs, fromEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultText } from "#actors/blob-storage/ports/fault.ts"
import { Volume, type VolumeContext, volumeAfter } from "#actors/blob-storage/volume.ts"
import { address, Commands } from "#actors/commands.ts"
import { firstBatch } from "#actors/first-batch.ts"
import { Log } from "#events/log.ts"
import { facts_max, RecordFacts, type VolumeFact } from "#schemas/blob-storage/volume.ts"

/**
 * Pause before the store is asked again when it had nothing new, and while it is being written to,
 * in milliseconds: a fact costs this process more than the put that it tells of.
 */
const idle_ms = 250

/**
 * The longest pause while it is being written to, in milliseconds. Each is twice the one before
 * where less comes than a commit holds: a commit costs every node of a cluster most of a
 * millisecond, and one with ten facts hardly more than one with one. And it is this one where the
 * thread has no time left: to tell of a blob takes as much as to store it. Decisions 0155, 0162.
 */
const pause_ms_max = 1000

/** How old the last fact in the log may be before the journal no longer pauses, milliseconds. */
const behind_ms_max = 60_000

const nanos_per_ms = 1e6

/** Pause after the log or the store could not be reached, in milliseconds. */
const retry_ms = 500

/** In the order of the command's fields, so that it is not made anew. */
const volumeFact = (fact: BlobFact): VolumeFact => {
  const { cursor, kind, id, size, checksum, policy, shard, labels } = fact
  const { at, actor, request_id, correlation_id } = fact
  return {
    cursor,
    kind,
    id,
    size,
    checksum,
    policy,
    ...(shard && { shard }),
    ...(labels && { labels }),
    at: String(at),
    actor,
    request_id,
    correlation_id,
  }
}

/** The store's journal is another than the one whose facts are in the log. */
export class ForeignJournal extends Schema.TaggedError<ForeignJournal>()("ForeignJournal", {
  detail: Schema.String,
}) {}

/** The volume as the log has it; undefined before its first fact. */
const loadVolume = Effect.fnUntraced(function* (node_id: string) {
  const log = yield* Log
  const last = yield* log.load(`${Volume.name}.${node_id}`)
  return last && (yield* volumeAfter(log, last))
})

/** The last fact of the node that the log has; 0 before its first. */
export const recordedCursor = (node_id: string) =>
  Effect.map(loadVolume(node_id), (volume) => volume?.cursor ?? 0)

/**
 * Refuses a journal that begins anew (its folder was exchanged, say): it has facts up to a cursor
 * that the log has too, and they are not the log's. Acknowledged, they would be gone unrecorded.
 */
const checkOrigin = Effect.fnUntraced(function* (node_id: string, volume: VolumeContext) {
  const { cursor, last } = volume
  const blobs = yield* Blobs
  const [oldest] = yield* fromEngine(() => blobs.scan(0, 1))
  if (oldest === undefined || oldest.cursor > cursor) return
  const [same] = yield* fromEngine(() => blobs.scan(cursor - 1, 1))
  const agrees = same?.cursor === cursor && same.id === last?.id && `${same.at}` === last.at
  if (agrees) return
  const detail = `The blob store of ${node_id} is not the one that the log knows.`
  return yield* new ForeignJournal({ detail })
})

/** A read-only store forgets nothing, and its last facts are recorded all the same. */
const acknowledge = Effect.fnUntraced(function* (cursor: number) {
  const blobs = yield* Blobs
  const acknowledged = fromEngine(() => blobs.acknowledge(cursor))
  yield* Effect.catchTag(acknowledged, "BlobStoreReadOnly", () => Effect.void)
})

/**
 * Takes one commit's worth of the facts after `from` into the log; answers the last of them, and
 * whether more may wait.
 */
const recordNext = Effect.fnUntraced(function* (node_id: string, from: number) {
  const blobs = yield* Blobs
  const commands = yield* Commands
  const found = (yield* fromEngine(() => blobs.scan(from, facts_max))).map(volumeFact)
  const facts = firstBatch(found, facts_max)
  const last = facts.at(-1)
  if (last === undefined) return undefined
  const to = last.cursor

  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin = { command_id: `facts-${node_id}-${from}-${to}`, actor: `node:${node_id}`, at }
  const command = RecordFacts.make({ type: "RecordFacts", from, to, facts })
  yield* commands.send(origin, address(Volume, node_id, command))
  yield* acknowledge(to)
  return { last, has_more: found.length === facts_max || facts.length < found.length }
})

const isBehind = ({ at }: VolumeFact) =>
  Effect.map(
    Clock.currentTimeNanos,
    (now) => Number(now - BigInt(at)) / nanos_per_ms > behind_ms_max,
  )

/** Takes all that the store's journal holds into the log; answers the last fact's cursor. */
export const recordAll = Effect.fnUntraced(function* (node_id: string) {
  const volume = yield* loadVolume(node_id)
  let from = volume?.cursor ?? 0
  if (volume !== undefined) {
    yield* checkOrigin(node_id, volume)
    // A process that was killed may have recorded what it could not acknowledge any more.
    yield* acknowledge(from)
  }
  for (;;) {
    const recorded = yield* recordNext(node_id, from)
    if (recorded === undefined) return from
    from = recorded.last.cursor
  }
})

/**
 * Records until it is interrupted. A log or a store out of reach only delays it. `isFull` is asked
 * after each look whether others have used nearly all of the thread since it was asked last.
 */
export const journal = (node_id: string, isFull: () => boolean = () => false) =>
  Effect.gen(function* () {
    const blobs = yield* Blobs
    let cursor = yield* recordAll(node_id)
    let count = 0
    let pause_ms = idle_ms
    while (true) {
      const recorded = yield* recordNext(node_id, cursor)
      const { blob_count } = yield* fromEngine(blobs.usage)
      const is_busy = blob_count !== count
      const is_little = recorded !== undefined && !recorded.has_more
      // Asked each time, so that a rest of long ago does not count.
      const is_full = isFull()
      if (!is_little) pause_ms = recorded !== undefined && is_full ? pause_ms_max : idle_ms
      if (recorded === undefined || (is_busy && !(yield* isBehind(recorded.last)))) {
        yield* Effect.sleep(pause_ms)
      }
      if (is_little) pause_ms = Math.min(2 * pause_ms, pause_ms_max)
      cursor = recorded?.last.cursor ?? cursor
      count = blob_count
    }
  }).pipe(
    // Ended by a defect it would never say so, and the volume would keep its facts for ever.
    Effect.catchDefect((defect) => Effect.fail({ _tag: "Defect", detail: String(defect) })),
    Effect.tapError((error) =>
      Effect.logWarning(`The journal of ${node_id} waits: ${faultText(error)}`),
    ),
    Effect.retry(Schedule.spaced(retry_ms)),
  )
