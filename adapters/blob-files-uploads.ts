/**
 * Puts of the plain blob store, whole or piece by piece: bytes to a staged file, then to the line.
 */
import { join } from "node:path"
import { admit, type BlobOrigin, type OfferedBlob } from "#actors/blob-storage/blob-admission.ts"
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { type Line, refusal } from "./blob-files-commit.ts"
import type { Disk } from "./blob-files-disk.ts"
import { faultOf, thrown } from "#actors/blob-storage/blob-fault.ts"
import { type BlobIndex, type IndexedBlob, metaOf } from "./blob-files-index.ts"
import type { Places } from "./blob-files-recovery.ts"
import type { Reserve } from "./blob-files-reserve.ts"
import { type Identified, identify, type Staged, stage } from "./blob-files-staging.ts"

/** A put without its bytes. */
export interface PutOrder {
  readonly labels: BlobLabels
  readonly policy: ReplicationPolicy
  readonly origin: BlobOrigin
  readonly expected_id: BlobId | undefined
  readonly if_none_match: boolean
}

export interface PutAnswer {
  readonly id: BlobId
  readonly meta: BlobMeta
  readonly created: boolean
}

/** What uploads share: the store's parts, and the bytes that are stored or on their way. */
export interface UploadPlace {
  readonly disk: Disk
  readonly index: BlobIndex
  readonly line: Line
  readonly places: Places
  readonly reserve: Reserve
  readonly capacity_bytes: number
  readonly size_max_bytes: number
  readonly used_bytes: () => number
}

interface Upload {
  readonly order: PutOrder
  /** Ends when the last step asked for has ended, well or badly; never rejects. */
  turn: Promise<unknown>
  staged?: Staged
  reserved_bytes: number
  /** What ended the upload early: each later step is answered with it. */
  broken?: unknown
}

/** An upload whose file is there. */
type BegunUpload = Upload & { readonly staged: Staged }

const answer = (blob: IndexedBlob, created: boolean): PutAnswer => ({
  id: blob.id,
  meta: metaOf(blob),
  created,
})

/** The uploads under way, each a line of steps that run one after the other. */
const makeTurns = (fail: (detail: string) => void) => {
  const uploads = new Map<number, Upload>()

  /** Runs one step of an upload after those before it; a step that fails ends the upload. */
  const inTurn = <A>(key: number, step: (upload: Upload) => Promise<A>): Promise<A> => {
    const upload = uploads.get(key)
    if (!upload) return Promise.reject(new Error(`there is no upload ${key}`))
    const result = upload.turn.then(async () => {
      if (upload.broken !== undefined) throw upload.broken
      try {
        return await step(upload)
      } catch (cause) {
        upload.broken = cause
        const fault = faultOf(cause)
        if (fault._tag === "BlobStoreReadOnly") fail(fault.detail)
        throw cause
      }
    })
    upload.turn = result.catch(() => undefined)
    return result
  }
  const begun = <A>(key: number, step: (upload: BegunUpload) => Promise<A>): Promise<A> =>
    inTurn(key, (upload) => {
      const { staged } = upload
      if (!staged) throw new Error(`upload ${key} was not begun`)
      return step(Object.assign(upload, { staged }))
    })
  const open = (key: number, order: PutOrder) => {
    uploads.set(key, { order, turn: Promise.resolve(), reserved_bytes: 0 })
  }
  /** Takes an upload out once its last step has ended. */
  const take = async (key: number) => {
    const upload = uploads.get(key)
    uploads.delete(key)
    await upload?.turn
    return upload
  }
  return { inTurn, begun, open, take, keys: () => Array.from(uploads.keys()) }
}

/** The steps of one upload; what they reserve of the capacity is theirs until `discard`. */
const makeSteps = (place: UploadPlace) => {
  const { disk, index, line, places, reserve } = place
  let reserved_bytes = 0
  let files_made = 0

  const begin = async (upload: Upload) => {
    line.assertWritable()
    if (!(await reserve.hold())) {
      throw thrown({ _tag: "BlobCapacityExceeded", detail: "The disk is full." })
    }
    files_made += 1
    upload.staged = await stage(disk, join(places.incoming, String(files_made)))
  }
  const append = async (upload: BegunUpload, bytes: Uint8Array) => {
    const size = upload.reserved_bytes + bytes.length
    if (size > place.size_max_bytes) {
      throw thrown({ _tag: "BlobTooLarge", bytes_max: place.size_max_bytes })
    }
    if (place.used_bytes() + reserved_bytes + bytes.length > place.capacity_bytes) {
      const detail = `The store holds at most ${place.capacity_bytes} bytes.`
      throw thrown({ _tag: "BlobCapacityExceeded", detail })
    }
    reserved_bytes += bytes.length
    upload.reserved_bytes = size
    await upload.staged.append(bytes)
  }
  /** Answers what needs no storing: a repetition, or throws the refusal. */
  const settle = (offered: OfferedBlob): PutAnswer | undefined => {
    line.assertWritable()
    const present = index.find(offered.id)
    const refused = refusal(offered.id, admit(offered, present))
    if (refused) throw thrown(refused)
    return present && answer(present, false)
  }
  const finish = async (upload: BegunUpload, identity: Identified, at: bigint) => {
    const offered = { ...upload.order, ...identity }
    const settled = settle(offered)
    if (settled) return settled
    await upload.staged.seal(identity)
    const staged_path = upload.staged.path
    const outcome = await line.submit({ ...offered, kind: "put", at, staged_path })
    if (!outcome.blob) throw new Error("a put that was committed has no row")
    return answer(outcome.blob, outcome.created)
  }
  const discard = async (upload: Upload) => {
    reserved_bytes -= upload.reserved_bytes
    upload.reserved_bytes = 0
    await upload.staged?.discard()
  }
  return { begin, append, settle, finish, discard }
}

/** The engine's puts: `whole` for bytes that are all there, the others for a stream of them. */
export const makeUploads = (place: UploadPlace) => {
  const { begin, append, settle, finish, discard } = makeSteps(place)
  const { inTurn, begun, open, take, keys } = makeTurns(place.line.fail)
  let wholes = 0

  const end = async (key: number) => {
    const upload = await take(key)
    if (upload) await discard(upload)
  }
  const whole = async (order: PutOrder, bytes: Uint8Array, at: bigint) => {
    if (bytes.length > place.size_max_bytes) {
      throw thrown({ _tag: "BlobTooLarge", bytes_max: place.size_max_bytes })
    }
    const identity = identify(bytes)
    const settled = settle({ ...order, ...identity })
    if (settled) return settled
    // Streams have keys above zero, which the other thread chooses.
    wholes -= 1
    const key = wholes
    open(key, order)
    try {
      await inTurn(key, begin)
      await begun(key, (upload) => append(upload, bytes))
      return await begun(key, (upload) => finish(upload, identity, at))
    } finally {
      await end(key)
    }
  }
  return {
    whole,
    begin: async (key: number, order: PutOrder) => {
      open(key, order)
      await inTurn(key, begin)
    },
    append: (key: number, bytes: Uint8Array) => begun(key, (upload) => append(upload, bytes)),
    finish: (key: number, at: bigint) =>
      begun(key, (upload) => finish(upload, upload.staged.identity(), at)),
    end,
    endAll: async () => {
      await Promise.all(keys().map(end))
    },
  }
}
