/**
 * Puts that arrive piece by piece, and puts of large blobs. Small content is buffered and put in
 * one step; large content is streamed to extents as it arrives.
 */
import type { PutOrder, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { NodeUpload } from "#actors/blob-storage/ports/node-engine.ts"
import { isHeld } from "../blob-index/blob-index.ts"
import type { ExtentFiles } from "../extents/files.ts"
import { admission, refusalOf, replacesExtents } from "../log/decide.ts"
import { metaOf } from "../log/record-facts.ts"
import type { PutOperation, VolumeParts } from "../parts.ts"
import type { Reads } from "../reads/reads.ts"
import type { Windows } from "../reads/windows.ts"
import { type Intake, identified, makeSession, mayBeStored } from "./intake.ts"
import { putAnswer } from "./puts.ts"
import { makeSeal } from "./staging.ts"
import type { BlobStream } from "./stream.ts"

export type UploadParts = Pick<VolumeParts, "limits" | "commits" | "log" | "index" | "budget"> &
  Pick<Reads, "verify">

/** A put of complete content. */
export type Put = (
  order: PutOrder,
  parts: ReadonlyArray<Uint8Array>,
  at: bigint,
) => Promise<PutResult>

export interface Uploads {
  readonly upload: (order: PutOrder, size: number | undefined) => NodeUpload
  /** Puts a blob of at least `limits.inline_bytes_max` bytes. */
  readonly putLarge: Put
}

/** Whether content of at least this many bytes may be stored already. */
const makeMayBeDuplicate =
  (parts: UploadParts, { expected_id, length = 0 }: PutOrder) =>
  (bytes: number) => {
    if (expected_id !== undefined && !isHeld(parts.index.find(expected_id))) return false
    return mayBeStored(parts, Math.max(bytes, length))
  }

/** The response to a put of content that is stored and was verified. Throws a refusal. */
const settle = async ({ index, log, verify }: UploadParts, put: PutOperation) => {
  const place = index.find(put.id)
  const present = isHeld(place) ? await log.head(put.id, place) : undefined
  const refused = refusalOf(put.id, admission(put, present))
  if (refused) throw faultError(refused)
  if (!present || replacesExtents(put.extents.length > 0, present, undefined)) return undefined
  const head = await verify(put.id, put.at)
  return head && { id: put.id, meta: metaOf(head), created: false }
}

const commit = async (
  parts: UploadParts,
  put: PutOperation,
  stream: BlobStream,
): Promise<PutResult> => {
  const settled = await settle(parts, put)
  if (settled) return settled
  await stream.sync()
  return putAnswer(put, await parts.commits.submit(put))
}

const putOf = (order: PutOrder, size: number, at: bigint) => ({
  ...order,
  kind: "put" as const,
  size,
  bytes: size,
  copy: undefined,
  at,
  parts: [],
  crcs: [],
  extents: [],
})

/** Resolves an upload whose bytes were not kept, if the blob is stored. */
const settleDuplicate = async (parts: UploadParts, put: PutOperation, cause: unknown) => {
  parts.commits.assertWritable()
  const settled = await settle(parts, put)
  if (!settled) throw cause
  return settled
}

const finishOf =
  (parts: UploadParts, order: PutOrder, intake: Intake, putSmall: Put) =>
  async (at: bigint): Promise<PutResult> => {
    const surplus = intake.surplus()
    if (surplus) {
      const put = { ...putOf(order, intake.size(), at), ...identified(surplus.hasher) }
      return settleDuplicate(parts, put, surplus.cause)
    }
    const large = intake.large()
    if (!large) {
      // The put itself reserves the space from here on.
      intake.release()
      return putSmall(order, intake.buffered.take(intake.buffered.bytes()), at)
    }
    const placed = await large.stream.complete()
    const put = { ...putOf(order, intake.size(), at), ...identified(large.hasher) }
    return commit(parts, { ...put, extents: placed }, large.stream)
  }

/** The parts that an upload uses. */
interface UploadResources {
  readonly extents: ExtentFiles
  readonly windows: Windows
  readonly putSmall: Put
}

const beginUpload = (
  parts: UploadParts,
  { extents, windows, putSmall }: UploadResources,
  order: PutOrder,
  announced: number | undefined,
): NodeUpload => {
  const mayBeDuplicate = makeMayBeDuplicate(parts, order)
  const session = makeSession(parts, extents, { announced, mayBeDuplicate })
  const finishNow = finishOf(parts, order, session.intake, putSmall)
  let finishing: Promise<PutResult> | undefined

  const finish = async (at: bigint) => {
    finishing ??= session.work(() => finishNow(at))
    try {
      return await finishing
    } finally {
      await session.abort()
    }
  }
  const { write, abort } = session
  return { write, finish, seal: makeSeal(windows, session), abort }
}

/** The volume's uploads. `putSmall` puts blobs smaller than `limits.inline_bytes_max`. */
export const makeUploads = (parts: UploadParts, resources: UploadResources): Uploads => {
  const upload = (order: PutOrder, size: number | undefined) =>
    beginUpload(parts, resources, order, size)
  const putLarge: Put = async (order, bytes, at) => {
    const size = bytes.reduce((sum, { length }) => sum + length, 0)
    const one = upload(order, size)
    try {
      for (const part of bytes) await one.write(part)
      return await one.finish(at)
    } finally {
      await one.abort()
    }
  }
  return { upload, putLarge }
}
