/**
 * Receives copies from other nodes: whole blobs and shards. Small ones go to the log, large ones to
 * extents, as for a put, but with the metadata of the first put.
 *
 * Source: document 1 §1 InternalService; docs/decisions/0121-copies-of-a-cluster.md.
 */
import { type BlobFault, faultError } from "#actors/blob-storage/ports/fault.ts"
import type {
  CopyOrder,
  HeldCopy,
  IncomingCopy,
  NodeEngine,
  ReceiveResult,
} from "#actors/blob-storage/ports/node-engine.ts"
import { type BlobId, blob_id_bytes, storedPolicy } from "#schemas/blob-storage/blob.ts"
import { isHeld } from "../blob-index/blob-index.ts"
import type { ExtentFiles } from "../extents/files.ts"
import { latest, replacesExtents } from "../log/decide.ts"
import { hashOf, type RecordHead, shardOf, sinceOf } from "../log/record.ts"
import { heldCopyOf } from "../log/record-facts.ts"
import type { Outcome, PutOperation, VolumeParts } from "../parts.ts"
import type { Reads } from "../reads/reads.ts"
import { admitCopy, orderFault, putAtIn } from "./copy-admission.ts"
import { identified, makeSession, type Session } from "./intake.ts"
import { crcsOf, hashHex } from "./puts.ts"

export type CopyInParts = Pick<VolumeParts, "limits" | "commits" | "log" | "index" | "budget"> &
  Pick<NodeEngine, "renew"> &
  Pick<Reads, "verify"> & {
    /** The time of the last record, in Unix nanoseconds. */
    readonly last_at: () => bigint
  }

const failed = (detail: string) => faultError({ _tag: "BlobStoreFailed", detail })
const copy_gone = failed("The existing copy was removed in the meantime.")

const putOf = (order: CopyOrder, bytes: number, at: bigint): PutOperation => ({
  kind: "put",
  id: order.id,
  hash: order.checksum,
  size: order.size,
  bytes,
  copy: order,
  checksum: Buffer.from(order.checksum, "hex").toString("base64"),
  labels: order.labels,
  policy: storedPolicy(order.policy),
  origin: order.origin,
  at,
  expected_id: undefined,
  if_none_match: false,
  parts: [],
  crcs: [],
  extents: [],
})

/** Throws if the content of a whole copy does not match its id. A shard has no hash. */
const assertHash = (order: CopyOrder, hash: () => string) => {
  if (order.shard) return
  const found = hash()
  if (found === order.checksum) return
  // The first half of a BLAKE3 digest in hex is a BlobId.
  const actual = found.slice(0, 2 * blob_id_bytes) as BlobId
  throw faultError({ _tag: "BlobIdMismatch", expected: order.id, actual })
}

/**
 * The existing copy, if it satisfies the order; throws a refusal. Verifies the whole copy, unless
 * `is_read` says that this was done. Called before the bytes arrive, because they may be many; the
 * commit decides again. A copy whose extents the order would replace does not count.
 */
const makeSettle =
  ({ index, limits, log, verify, last_at }: CopyInParts, order: CopyOrder, bytes: number) =>
  async (is_read: boolean): Promise<HeldCopy | undefined> => {
    const place = index.find(order.id)
    const head = place && place.kind !== "gone" ? await log.head(order.id, place) : undefined
    // A corrupt head is handled when the copy is committed.
    if (!head) return undefined
    const admission = admitCopy(order, presenceOf(head, isHeld(place)))
    if (admission.verdict === "refuse") throw faultError(admission.fault)
    if (admission.verdict === "store") return undefined
    if (replacesExtents(bytes >= limits.inline_bytes_max, head, order.shard)) return undefined
    const found = is_read ? head : await verify(order.id, last_at())
    return found && heldCopyOf(found)
  }

const presenceOf = (head: RecordHead, is_held: boolean) => ({
  held: is_held ? { checksum: hashOf(head), shard: shardOf(head) } : undefined,
  deleted_at: is_held ? undefined : sinceOf(head),
})

/** The existing copy, with its new times if the order's content replaced its extents. */
const presentCopyOf = (order: CopyOrder, copy: HeldCopy, record: Outcome["record"]): HeldCopy => {
  if (record === undefined) return copy
  return { ...copy, put_at: latest(putAtIn(order), copy.put_at), stored_at: record.at }
}

const received = (
  put: PutOperation,
  order: CopyOrder,
  { head, record }: Outcome,
): ReceiveResult => {
  if (head) return { copy: presentCopyOf(order, heldCopyOf(head), record), created: false }
  if (!record) throw new Error("a copy was neither stored nor present")
  const { id, checksum, size, created_at, shard } = order
  const times = { created_at, put_at: putAtIn(order), stored_at: record.at }
  const copy = { id, checksum, size, policy: put.policy, ...times, shard }
  return { copy: { kind: shard ? "shard" : "whole", ...copy }, created: true }
}

/** Updates the existing copy to the order's put time, if that is later. */
const renewedFor = async (
  { renew }: CopyInParts,
  order: CopyOrder,
  found: ReceiveResult,
  at: bigint,
) => {
  const put_at = putAtIn(order)
  if (found.copy.put_at >= put_at) return found
  const copy = await renew(order.id, put_at, at)
  if (copy === undefined) throw copy_gone
  return { copy, created: false }
}

/** Marks a rejection as handled: `finish` rejects too, if the write is not awaited. */
const handled = <A>(work: Promise<A>): Promise<A> => {
  work.catch(() => undefined)
  return work
}

const too_early = failed("The copy is incomplete.")
// Shared: every copy ends with an abort, and an error costs more than hashing 4 KiB.
const aborted = failed("The copy was aborted.")

/** Holds a copy's bytes until all have arrived. `store` then writes its record. */
interface CopyReceiver extends Pick<Session, "write" | "work" | "abort"> {
  readonly store: (at: bigint) => Promise<ReceiveResult>
}

/** A copy that goes to extents. */
const receiveLarge = (
  parts: CopyInParts,
  extents: ExtentFiles,
  order: CopyOrder,
  bytes: number,
): CopyReceiver => {
  const is_hashed = order.shard === undefined
  const { intake, ...session } = makeSession(parts, extents, { announced: bytes, is_hashed })
  const store = async (at: bigint) => {
    const large = intake.large()
    if (large === undefined || intake.size() < bytes) throw too_early
    const put = putOf(order, bytes, at)
    const stored = await large.stream.complete()
    assertHash(order, () => identified(large.hasher).hash)
    await large.stream.sync()
    return received(put, order, await parts.commits.submit({ ...put, extents: stored }))
  }
  return { ...session, store }
}

/** A copy that goes to the log. The commit reserves its space, so there is nothing to release. */
const receiveSmall = (
  { commits, limits }: CopyInParts,
  order: CopyOrder,
  bytes: number,
): CopyReceiver => {
  const parts: Array<Uint8Array> = []
  let received_bytes = 0
  let broken: Error | undefined
  const refuse = (cause: Error) => {
    broken ??= cause
    return handled(Promise.reject(broken))
  }
  const write = (part: Uint8Array) => {
    if (broken) return refuse(broken)
    if (bytes > limits.size_max_bytes) {
      return refuse(faultError({ _tag: "BlobTooLarge", bytes_max: limits.size_max_bytes }))
    }
    received_bytes += part.length
    if (received_bytes > bytes) return refuse(failed(`The copy has more than its ${bytes} bytes.`))
    parts.push(part)
    return undefined
  }
  const store = async (at: bigint) => {
    if (broken) throw broken
    if (received_bytes < bytes) throw too_early
    assertHash(order, () => hashHex(parts))
    const put = { ...putOf(order, bytes, at), parts, crcs: crcsOf(parts, bytes) }
    return received(put, order, await commits.submit(put))
  }
  let step_in_progress: Promise<unknown> | undefined
  const abort = async () => {
    broken ??= aborted
    await step_in_progress?.catch(() => undefined)
  }
  const work: CopyReceiver["work"] = (next) => {
    const mine = next()
    step_in_progress = mine
    return mine
  }
  return { write, store, abort, work }
}

/** A copy refused before any byte. */
const refusing = (fault: BlobFault): IncomingCopy => {
  const refuse = () => handled(Promise.reject(faultError(fault)))
  return { write: refuse, finish: refuse, abort: () => Promise.resolve() }
}

const begin = (
  parts: CopyInParts,
  extents: ExtentFiles,
  order: CopyOrder,
  bytes: number,
): IncomingCopy => {
  const is_small = bytes < parts.limits.inline_bytes_max
  const receiver = is_small
    ? receiveSmall(parts, order, bytes)
    : receiveLarge(parts, extents, order, bytes)
  const settle = makeSettle(parts, order, bytes)
  /** The existing copy; undefined once there is known to be none. */
  let present = parts.index.find(order.id) ? handled(settle(false)) : undefined
  let finishing: Promise<ReceiveResult> | undefined

  const writeAfter = async (held: Promise<HeldCopy | undefined>, part: Uint8Array) => {
    if (await held) return
    present = undefined
    await receiver.write(part)
  }
  const finishAll = async (at: bigint): Promise<ReceiveResult> => {
    parts.commits.assertWritable()
    const copy_here = await present
    if (!copy_here)
      return renewedFor(parts, order, await receiver.work(() => receiver.store(at)), at)
    // The bytes were dropped, so the copy that satisfied the order must still be present.
    const copy = await settle(true)
    if (!copy) throw copy_gone
    return renewedFor(parts, order, { copy, created: false }, at)
  }
  return {
    write: (part) => (present ? handled(writeAfter(present, part)) : receiver.write(part)),
    finish: async (at) => {
      finishing ??= finishAll(at)
      try {
        return await finishing
      } finally {
        await receiver.abort()
      }
    },
    abort: receiver.abort,
  }
}

/** Receives copies from other nodes. */
export const makeReceive =
  (parts: CopyInParts, extents: ExtentFiles) =>
  (order: CopyOrder, bytes: number): IncomingCopy => {
    const fault = orderFault(order, bytes)
    return fault ? refusing(fault) : begin(parts, extents, order, bytes)
  }
