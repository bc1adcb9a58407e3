/**
 * The journal process: records the facts of this node's blob store in the log, in order.
 *
 * It stores nothing. The cursor is in the log, and the aggregate rejects facts that do not follow
 * it; the store deletes a fact only after the log has recorded it. So a kill neither loses nor
 * duplicates facts.
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
 * Pause before the next scan when the store had no new facts, and initially while it receives
 * writes, in milliseconds. Recording a fact costs this process more than the put itself.
 */
const idle_ms = 250

/**
 * The longest pause while the store receives writes, in milliseconds. The pause doubles while less
 * than a full commit arrives: each commit costs every node of a cluster almost a millisecond, and
 * ten facts cost hardly more than one. If the thread is saturated, this pause applies at once,
 * because recording a blob takes as long as storing it. Decisions 0155, 0162.
 */
const pause_ms_max = 1000

/** The journal stops pausing once the last recorded fact is older than this, in milliseconds. */
const behind_ms_max = 60_000

const nanos_per_ms = 1e6

/** Pause after the log or the store was unreachable, in milliseconds. */
const retry_ms = 500

/** Fields in the command's order, so that encoding does not rebuild the object. */
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

/** The store's journal is not the one whose facts are in the log. */
export class ForeignJournal extends Schema.TaggedError<ForeignJournal>()("ForeignJournal", {
  detail: Schema.String,
}) {}

/** Loads the volume from the log; undefined before its first fact. */
const loadVolume = Effect.fnUntraced(function* (node_id: string) {
  const log = yield* Log
  const last = yield* log.load(`${Volume.name}.${node_id}`)
  return last && (yield* volumeAfter(log, last))
})

/** The cursor of the node's last recorded fact; 0 before the first. */
export const recordedCursor = (node_id: string) =>
  Effect.map(loadVolume(node_id), (volume) => volume?.cursor ?? 0)

/**
 * Rejects a journal that restarted, for example because its folder was replaced. Its cursors
 * overlap those in the log but denote other facts, and acknowledging them would delete unrecorded
 * facts.
 */
const checkOrigin = Effect.fnUntraced(function* (node_id: string, volume: VolumeContext) {
  const { cursor, last } = volume
  const blobs = yield* Blobs
  const [oldest] = yield* fromEngine(() => blobs.scan(0, 1))
  if (oldest === undefined || oldest.cursor > cursor) return
  const [same] = yield* fromEngine(() => blobs.scan(cursor - 1, 1))
  const agrees = same?.cursor === cursor && same.id === last?.id && `${same.at}` === last.at
  if (agrees) return
  const detail = `The blob store of ${node_id} is not the one recorded in the log.`
  return yield* new ForeignJournal({ detail })
})

/** A read-only store cannot delete facts, but they are recorded all the same. */
const acknowledge = Effect.fnUntraced(function* (cursor: number) {
  const blobs = yield* Blobs
  const acknowledged = fromEngine(() => blobs.acknowledge(cursor))
  yield* Effect.catchTag(acknowledged, "BlobStoreReadOnly", () => Effect.void)
})

/**
 * Records one commit of facts after `from`; returns the last one and whether more may be waiting.
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
  const origin = {
    command_id: `facts-${node_id}-${from}-${to}`,
    actor: `process:journal-${node_id}`,
    at,
  }
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

/** Records every fact in the store's journal; returns the cursor of the last one. */
export const recordAll = Effect.fnUntraced(function* (node_id: string) {
  const volume = yield* loadVolume(node_id)
  let from = volume?.cursor ?? 0
  if (volume !== undefined) {
    yield* checkOrigin(node_id, volume)
    // A killed process may have recorded facts without acknowledging them.
    yield* acknowledge(from)
  }
  for (;;) {
    const recorded = yield* recordNext(node_id, from)
    if (recorded === undefined) return from
    from = recorded.last.cursor
  }
})

/**
 * Records facts until it is interrupted. It retries while the log or the store is unreachable.
 * `isFull` returns whether other work has nearly saturated the thread since the previous call.
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
      // Called on every pass, so that each measurement covers only the latest one.
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
    // A defect must not end the journal silently, or the volume would keep its facts permanently.
    Effect.catchDefect((defect) => Effect.fail({ _tag: "Defect", detail: String(defect) })),
    Effect.tapError((error) =>
      Effect.logWarning(`The journal of ${node_id} is paused and retries: ${faultText(error)}`),
    ),
    Effect.retry(Schedule.spaced(retry_ms)),
  )
