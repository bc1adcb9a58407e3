/**
 * The commit queue: serializes every change to a volume. While a batch is written and synced, the
 * next one gathers, so that many operations share one sync and a single one waits for no other. A
 * batch is decided once all earlier ones are durable, and resolved once it is durable itself.
 *
 * A batch never holds two operations on one id: the later one waits for the next batch.
 */
import { type BlobFault, faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { causeText } from "#schemas/cause-text.ts"
import { isHeld } from "../blob-index/blob-index.ts"
import type { CommitQueue, LogReader, Operation, Outcome } from "../parts.ts"
import { damaged_record } from "../reads/damage.ts"
import { type BatchRecord, batchBytesMax, recordBytesMax } from "./batch.ts"
import { decide, type SpaceFault, type Stamps } from "./decide.ts"
import { batch_bytes_max } from "./format.ts"
import type { BlobTail, NewRecord, RecordHead } from "./record.ts"
import type { VolumeState } from "./state.ts"
import type { LogWriter } from "./writer.ts"

/** Maximum number of parts in one write, as a disk accepts them. */
const parts_max = 1000

/** Maximum number of operations that a batch skips because their id is already in it. */
const later_max = 1000

interface Waiting {
  readonly operation: Operation
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (cause: unknown) => void
}

/** An operation with the record to write for it. */
interface Written extends BatchRecord {
  readonly waiting: Waiting
  readonly outcome: Outcome
}

export interface CommitQueueParts {
  readonly state: VolumeState
  readonly log: LogReader
  /** Creates the writer; `fail` is that of this queue. */
  readonly makeWriter: (fail: (detail: string) => void) => LogWriter
  /** Why a put exceeds the capacity, given the bytes already planned for the batch. */
  readonly capacityFault: (bytes: number, planned_bytes: number) => BlobFault | undefined
  /** Called after each batch with its length in bytes. */
  readonly noteWritten: (bytes: number) => void
  /** Called once, with the reason the volume became read-only. */
  readonly report: (problem: string) => void
  /** Deletes of the last batch before startup, which the log records only once. */
  readonly deletes: ReadonlyArray<NewRecord>
}

/** Payload bytes that an operation adds to a batch. Heads are counted when encoded. */
const payloadOf = (operation: Operation) => {
  if (operation.kind === "put") return operation.extents.length > 0 ? 0 : operation.bytes
  return operation.kind === "move" ? operation.payload.length : 0
}

const partsOf = (operation: Operation): ReadonlyArray<Uint8Array> => {
  if (operation.kind === "put") return operation.parts
  return operation.kind === "move" && operation.payload.length > 0 ? [operation.payload] : []
}

/** Operations in order of arrival, except those that wait for an operation on the same id. */
const makeQueue = () => {
  let waiting: Array<Waiting> = []
  /** Takes the operations of the next batch. */
  const take = () => {
    const batch: Array<Waiting> = []
    const later: Array<Waiting> = []
    const ids = new Set<BlobId>()
    let bytes = 0
    let parts = 0
    let next = 0
    for (; next < waiting.length; next++) {
      const one = waiting[next]
      if (!one) break
      const { operation } = one
      const more_bytes = payloadOf(operation)
      const more_parts = 1 + partsOf(operation).length
      const is_full = bytes + more_bytes > batch_bytes_max || parts + more_parts > parts_max
      // A single operation may exceed the size of a batch.
      if (is_full && batch.length > 0) break
      if (ids.has(operation.id)) {
        later.push(one)
        if (later.length === later_max) {
          next += 1
          break
        }
        continue
      }
      ids.add(operation.id)
      batch.push(one)
      bytes += more_bytes
      parts += more_parts
    }
    const rest = next === waiting.length ? [] : waiting.slice(next)
    waiting = later.length === 0 ? rest : [...later, ...rest]
    return batch
  }
  return {
    take,
    takeAll: () => waiting.splice(0),
    push: (one: Waiting) => waiting.push(one),
    isEmpty: () => waiting.length === 0,
    /** Returns operations to the front. */
    requeue: (some: ReadonlyArray<Waiting>) => {
      waiting = [...some, ...waiting]
    },
  }
}
type Queue = ReturnType<typeof makeQueue>

/**
 * Reads the heads of the blobs that operations refer to. A blob with a corrupt head is quarantined
 * in this batch, and the operation waits for the next one.
 */
const makeLookUp = ({ state, log }: CommitQueueParts, queue: Queue) => {
  const needsHead = ({ kind, id }: Operation) => {
    const place = kind === "move" ? undefined : state.index.find(id)
    return place !== undefined && place.kind !== "gone"
  }
  const lookUp = async (
    one: Waiting,
    { heads, tails }: Lookups,
  ): Promise<ReadonlyArray<Waiting>> => {
    const { operation } = one
    const place = state.index.find(operation.id)
    if (!place) return [one]
    try {
      const head = await log.head(operation.id, place)
      if (head) {
        heads.set(operation.id, head)
        return [one]
      }
      // A corrupt tombstone still counts as one.
      if (!isHeld(place)) return [one]
      const tail = await log.tail(operation.id, place)
      if (tail) tails.set(operation.id, tail)
    } catch (cause) {
      one.reject(faultError(faultOf(cause)))
      return []
    }
    if (operation.kind !== "put" && operation.kind !== "delete") return [one]
    const { id, at } = operation
    const quarantined = { kind: "quarantined", id, place, detail: damaged_record, at } as const
    return [{ operation: quarantined, resolve: () => queue.requeue([one]), reject: one.reject }]
  }
  return async (batch: ReadonlyArray<Waiting>, lookups: Lookups) => {
    if (!batch.some(({ operation }) => needsHead(operation))) return batch
    const looked = await Promise.all(
      batch.map(async (one) => (needsHead(one.operation) ? lookUp(one, lookups) : [one])),
    )
    return looked.flat()
  }
}

const no_origin = { actor: "", request_id: "", correlation_id: "" } as const

/**
 * Repeats the deletes of each batch in the next one, so that neither a flipped bit nor a
 * misdirected write destroys both records; one of them keeps the blob deleted. Once a checkpoint
 * follows, it is another trace of both.
 */
const makeRepeats = (first: ReadonlyArray<NewRecord>) => {
  let deletes = first
  const repeatOf = (record: NewRecord): BatchRecord => ({
    record: { ...record, is_moved: true, origin: no_origin, labels: {}, freed: [] },
    parts: [],
    position: 0,
    bytes: 0,
  })
  return {
    /** Upper bound of the space that the repeats take in a batch, in bytes. */
    bytes: () => deletes.reduce((sum, record) => sum + recordBytesMax(record), 0),
    /** The repeats for a batch of these records: deletes of other ids. */
    forBatch: (written: ReadonlyArray<BatchRecord>): ReadonlyArray<BatchRecord> => {
      if (deletes.length === 0) return []
      const ids = new Set(written.map(({ record }) => record.id))
      return deletes.filter(({ id }) => !ids.has(id)).map(repeatOf)
    },
    /** Notes that these records, and the repeats, are durable. */
    noteWritten: (written: ReadonlyArray<BatchRecord>) => {
      deletes = written
        .map(({ record }) => record)
        .filter(({ kind, is_moved }) => kind === "tombstone" && !is_moved)
    },
  }
}

/** Decides operations one after the other, as long as their records fit into the current file. */
const makeGather = ({ state, capacityFault }: CommitQueueParts) => {
  const { counters, index } = state
  return (batch: ReadonlyArray<Waiting>, { heads, tails }: Lookups, limits: Limits) => {
    const written: Array<Written> = []
    let { cursor, last_at } = counters
    let bytes = limits.reserved_bytes
    let planned_bytes = 0
    const stamps: Stamps = {
      cursor: () => cursor + 1,
      stamp: (at) => (at > last_at ? at : last_at + 1n),
      get last_at() {
        return last_at
      },
    }
    const spaceFault: SpaceFault = ({ bytes: wanted, extents }) =>
      limits.put_fault ?? (extents.length > 0 ? undefined : capacityFault(wanted, planned_bytes))
    for (const [n, waiting] of batch.entries()) {
      const { operation, resolve, reject } = waiting
      const { id } = operation
      const place = index.find(id)
      const head = { [isHeld(place) ? "head" : "tombstone"]: heads.get(id) }
      const present = { place, head: undefined, tail: tails.get(id), ...head }
      const decision = decide(operation, present, stamps, spaceFault)
      if (decision.kind === "return") resolve(decision.outcome)
      if (decision.kind === "refuse") reject(faultError(decision.fault))
      if (decision.kind !== "write") continue
      const { record, outcome } = decision
      const record_bytes = recordBytesMax(record)
      if (batchBytesMax(bytes + record_bytes) > limits.available) {
        const rest_bytes = batchBytesMax(limits.reserved_bytes + record_bytes)
        return { written, rest: batch.slice(n), rest_bytes }
      }
      bytes += record_bytes
      if (record.cursor > cursor) cursor = record.cursor
      if (record.at > last_at) last_at = record.at
      if (record.kind === "blob" && !record.is_moved) planned_bytes += record_bytes
      written.push({ record, parts: partsOf(operation), position: 0, bytes: 0, waiting, outcome })
    }
    return { written, rest: [], rest_bytes: 0 }
  }
}

/** Heads and tails in the log, of the blobs that the operations of a batch refer to. */
interface Lookups {
  readonly heads: Map<BlobId, RecordHead>
  /** Of blobs with a corrupt head. */
  readonly tails: Map<BlobId, BlobTail>
}

interface Limits {
  /** Bytes left in the current file. */
  readonly available: number
  /** Bytes of the batch taken by other records. */
  readonly reserved_bytes: number
  /** Why puts are refused at the moment. */
  readonly put_fault: BlobFault | undefined
}

/**
 * Whether an operation counts as a put, which may not use the space that a full disk holds back for
 * upkeep.
 */
const isPut = ({ operation }: Waiting) =>
  operation.kind === "put" || (operation.kind === "move" && operation.renewal !== undefined)

/** Commits batches from the queue, one after the other. */
const makeBatches = (parts: CommitQueueParts, queue: Queue, writer: LogWriter) => {
  const { state } = parts
  const lookUp = makeLookUp(parts, queue)
  const gather = makeGather(parts)
  const repeats = makeRepeats(parts.deletes)

  /** Makes space for the first operation that did not fit, or rejects it. */
  const makeSpace = async (rest: ReadonlyArray<Waiting>, bytes: number) => {
    const [first] = rest
    if (!first) return
    const fault = await writer.roll(bytes, isPut(first))
    if (fault) first.reject(faultError(fault))
    queue.requeue(fault ? rest.slice(1) : rest)
  }
  const write = async (written: ReadonlyArray<Written>) => {
    const first_cursor = state.counters.cursor + 1
    const records = [...written, ...repeats.forBatch(written)]
    const writing = writer.write(records, first_cursor)
    // Runs while the write is in progress.
    for (const { waiting, outcome } of written) {
      if (waiting.operation.kind === "put") waiting.operation.placed?.(outcome)
    }
    const { file, bytes } = await writing
    for (const entry of records) state.apply(entry.record, file, entry.position, entry.bytes)
    for (const { record } of written) state.recent.note(record)
    repeats.noteWritten(written)
    for (const { waiting, outcome } of written) waiting.resolve(outcome)
    parts.noteWritten(bytes)
  }
  const commitBatch = async (batch: ReadonlyArray<Waiting>, lookups: Lookups) => {
    const put_fault = batch.some(isPut) ? await writer.putFault() : undefined
    const limits = { available: writer.available(), reserved_bytes: repeats.bytes(), put_fault }
    const { written, rest, rest_bytes } = gather(batch, lookups, limits)
    if (written.length === 0) return makeSpace(rest, rest_bytes)
    queue.requeue(rest)
    await write(written)
  }
  /**
   * Commits one batch. Any error, of the disk or a defect, goes to `fail`: the durable state is
   * then unknown.
   */
  return async (fail: (cause: unknown) => Error): Promise<void> => {
    const lookups: Lookups = { heads: new Map(), tails: new Map() }
    const taken = await lookUp(queue.take(), lookups)
    try {
      await commitBatch(taken, lookups)
    } catch (cause) {
      const error = fail(cause)
      for (const { reject } of taken) reject(error)
    }
  }
}

export interface OpenCommitQueue extends CommitQueue {
  /** Runs a task between batches, for work that needs a quiescent volume, such as a checkpoint. */
  readonly between: <A>(work: () => Promise<A>) => Promise<A>
  readonly writer: LogWriter
}

/**
 * Creates the queue. The first failed write or sync makes it read-only, and so does `fail`; nothing
 * is retried.
 */
export const makeCommitQueue = (parts: CommitQueueParts): OpenCommitQueue => {
  const queue = makeQueue()
  const pauses: Array<() => Promise<void>> = []
  let failed: string | undefined
  let running: Promise<void> | undefined

  const readOnly = () => faultError({ _tag: "BlobStoreReadOnly", detail: failed ?? "" })
  const fail = (detail: string) => {
    if (failed !== undefined) return
    failed = detail
    parts.report(`the store is read-only until it is reopened. ${detail}`)
  }
  const failBy = (cause: unknown) => {
    fail(`A write could not be synced to disk: ${causeText(cause)}`)
    return readOnly()
  }
  const writer = parts.makeWriter(fail)
  const next = makeBatches(parts, queue, writer)

  const drain = async () => {
    // Operations that arrive in this turn of the event loop are committed together.
    await new Promise<void>((resolve) => setImmediate(resolve))
    while (!queue.isEmpty() || pauses.length > 0) {
      const pause = pauses.shift()
      if (pause) await pause()
      else if (failed === undefined) await next(failBy)
      else for (const { reject } of queue.takeAll()) reject(readOnly())
    }
    running = undefined
  }
  return {
    writer,
    fail,
    failed: () => failed,
    assertWritable: () => {
      if (failed !== undefined) throw readOnly()
    },
    submit: (operation) =>
      new Promise((resolve, reject) => {
        queue.push({ operation, resolve, reject })
        running ??= drain()
      }),
    between: (work) =>
      new Promise((resolve, reject) => {
        // An error is the caller's, and does not stop the queue.
        pauses.push(() => work().then(resolve, reject))
        running ??= drain()
      }),
    settled: async () => running,
  }
}
