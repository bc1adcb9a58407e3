/**
 * The one line in which everything that changes a plain blob store stands: renames, folder syncs,
 * the index transaction and removals, in that order, for as many operations at once as gathered
 * while the last ones were committed.
 *
 * A batch never holds two operations on one identifier, so an operation sees what those before it
 * did.
 */
import { dirname, join } from "node:path"
import {
  type Admission,
  admit,
  type BlobOrigin,
  type OfferedBlob,
} from "#actors/blob-storage/blob-admission.ts"
import type { BlobId, BlobLabels } from "#schemas/blob-storage/blob.ts"
import type { Disk } from "./blob-files-disk.ts"
import { type BlobFault, faultOf, isFull, thrown } from "#actors/blob-storage/blob-fault.ts"
import type { BlobIndex, IndexedBlob } from "./blob-files-index.ts"
import type { Reserve } from "./blob-files-reserve.ts"

/**
 * Operations in one transaction: past some hundreds the sync's share of each is next to nothing.
 */
const batch_operations_max = 256

export interface PutOperation extends OfferedBlob {
  readonly kind: "put"
  readonly size: number
  readonly labels: BlobLabels
  readonly origin: BlobOrigin
  readonly at: bigint
  /** A complete, synced file; where it is not moved from there, whoever made it removes it. */
  readonly staged_path: string
}

export type Operation =
  | PutOperation
  | {
      readonly kind: "delete"
      readonly id: BlobId
      readonly origin: BlobOrigin
      readonly at: bigint
    }
  | {
      readonly kind: "quarantined" | "lost"
      readonly id: BlobId
      /** The copy that was read: another that took its place since is left alone. */
      readonly created_at: bigint
      readonly detail: string
      readonly origin: BlobOrigin
      readonly at: bigint
    }
  | { readonly kind: "acknowledge"; readonly id: "journal"; readonly cursor: number }

/** What an operation came to: the blob that is stored now, for a put. */
export interface Outcome {
  readonly blob?: IndexedBlob
  readonly created: boolean
}

export interface CommitLine {
  readonly disk: Disk
  readonly index: BlobIndex
  readonly reserve: Reserve
  readonly blobPath: (id: BlobId) => string
  readonly quarantine_folder: string
}

interface Waiting {
  readonly operation: Operation
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (cause: unknown) => void
}

/** An operation on its way through a batch: `after` runs once the transaction is durable. */
interface Entry extends Waiting {
  admission?: Admission
  outcome: Outcome
  after?: () => Promise<void>
  fault?: BlobFault
  renamed?: string
}

const nothing: Outcome = { created: false }

/** What a put is answered that its admission refuses. */
export const refusal = (id: BlobId, admission: Admission): BlobFault | undefined => {
  if (admission.verdict === "mismatch") {
    return { _tag: "BlobIdMismatch", expected: admission.expected, actual: id }
  }
  if (admission.verdict !== "exists") return undefined
  return { _tag: "BlobAlreadyExists", id, detail: admission.detail }
}

/** Moves the files of the batch's new blobs to their names and makes the names durable. */
const placeFiles = async ({ disk, index, blobPath }: CommitLine, entries: ReadonlyArray<Entry>) => {
  const folders = new Set<string>()
  const place = async (entry: Entry) => {
    const { operation } = entry
    if (operation.kind !== "put") return
    const present = index.find(operation.id)
    entry.admission = admit(operation, present)
    const refused = refusal(operation.id, entry.admission)
    if (refused) entry.fault = refused
    else if (present) entry.outcome = { blob: present, created: false }
    if (entry.admission.verdict !== "store") return
    const path = blobPath(operation.id)
    try {
      await disk.rename(operation.staged_path, path)
      entry.renamed = path
      folders.add(dirname(path))
    } catch (cause) {
      if (!isFull(cause)) throw cause
      entry.fault = faultOf(cause)
    }
  }
  await Promise.all(entries.map(place))
  await Promise.all(Array.from(folders, (folder) => disk.syncFolder(folder)))
}

const applyPut = ({ index }: CommitLine, entry: Entry, put: PutOperation) => {
  if (entry.admission?.verdict !== "store") return
  const { id, checksum, size, policy, labels } = put
  const stored =
    policy === "REPLICATION_POLICY_UNSPECIFIED" ? "REPLICATION_POLICY_REPLICA3" : policy
  const blob = {
    id,
    checksum,
    size,
    labels,
    policy: stored,
    created_at: index.stamp(put.at),
  } as const
  index.store(blob, put.origin)
  entry.outcome = { blob, created: true }
}

/** Writes one operation's rows; runs inside the transaction, and again should that be repeated. */
const apply = (line: CommitLine, entry: Entry) => {
  const { operation } = entry
  const { disk, index, blobPath, quarantine_folder } = line
  if (operation.kind === "put") return applyPut(line, entry, operation)
  if (operation.kind === "acknowledge") {
    index.forget(operation.cursor)
    return
  }
  const { id, origin } = operation
  const present = index.find(id)
  if (operation.kind === "delete") {
    const at = index.stamp(operation.at)
    index.bury(id, at)
    if (present) index.remove(present, at, origin)
    if (present) entry.after = () => disk.remove(blobPath(id))
    if (present) entry.outcome = { blob: present, created: false }
    return
  }
  if (present?.created_at !== operation.created_at) return
  const at = index.stamp(operation.at)
  index.setAside(operation.kind, present, { at, detail: operation.detail, origin })
  entry.outcome = { blob: present, created: false }
  if (operation.kind === "lost") return
  const aside = join(quarantine_folder, `${id}-${at}`)
  entry.after = () => disk.rename(blobPath(id), aside)
}

const writesRows = ({ fault, operation, admission }: Entry) =>
  fault === undefined && (operation.kind !== "put" || admission?.verdict === "store")

const commitRows = async (line: CommitLine, entries: ReadonlyArray<Entry>) => {
  const { disk, index, reserve } = line
  const writing = entries.filter(writesRows)
  const run = (some: ReadonlyArray<Entry>) => {
    const work = () => {
      for (const entry of some) apply(line, entry)
    }
    if (some.length > 0) disk.commit(() => index.transaction(work))
  }
  try {
    run(writing)
  } catch (cause) {
    // A full disk refuses before anything is synced, so nothing was done. What makes room, and
    // what must not wait for room, goes through on the reserve; puts are refused.
    if (!isFull(cause)) throw cause
    await reserve.release()
    for (const entry of writing.filter(({ operation }) => operation.kind === "put")) {
      entry.fault = faultOf(cause)
      if (entry.renamed) await disk.remove(entry.renamed)
    }
    try {
      run(writing.filter(writesRows))
    } catch (again) {
      if (!isFull(again)) throw again
      for (const entry of writing) entry.fault ??= faultOf(again)
    }
  }
}

/**
 * The line. `submit` answers once the operation is durable and rejects with its fault; `committed`
 * is told each outcome. The first sync or commit that fails refuses everything from then on (`fail`
 * does so from outside): it is never tried again.
 */
export const commitLine = (
  line: CommitLine,
  committed: (outcome: Outcome, operation: Operation) => void,
) => {
  const queue: Array<Waiting> = []
  let failed: string | undefined
  let running: Promise<void> | undefined

  const takeBatch = () => {
    const ids = new Set<string>()
    for (const { operation } of queue) {
      if (ids.size === batch_operations_max || ids.has(operation.id)) break
      ids.add(operation.id)
    }
    return queue.splice(0, ids.size).map((waiting): Entry => ({ ...waiting, outcome: nothing }))
  }
  const readOnly = () => thrown({ _tag: "BlobStoreReadOnly", detail: failed ?? "" })
  const fail = (detail: string) => {
    failed ??= detail
  }
  const commit = async (entries: ReadonlyArray<Entry>) => {
    try {
      await placeFiles(line, entries)
      await commitRows(line, entries)
    } catch (cause) {
      fail(`A write could not be made durable: ${faultDetail(cause)}`)
      for (const { reject } of entries) reject(readOnly())
      return
    }
    // A file that cannot be removed now is without a row, and goes at the next start.
    await Promise.allSettled(entries.map(async ({ after }) => after?.()))
    for (const { fault, outcome, operation, resolve, reject } of entries) {
      if (fault) {
        reject(thrown(fault))
        continue
      }
      committed(outcome, operation)
      resolve(outcome)
    }
  }
  const drain = async () => {
    // One turn later, so that what arrives in this turn commits together.
    await Promise.resolve()
    while (queue.length > 0) {
      const entries = takeBatch()
      if (failed === undefined) await commit(entries)
      else for (const { reject } of entries) reject(readOnly())
    }
    running = undefined
  }
  const submit = (operation: Operation) =>
    new Promise<Outcome>((resolve, reject) => {
      queue.push({ operation, resolve, reject })
      running ??= drain()
    })
  const assertWritable = () => {
    if (failed !== undefined) throw readOnly()
  }
  const settled = async () => running
  return { submit, settled, fail, failed: () => failed, assertWritable }
}
export type Line = ReturnType<typeof commitLine>

const faultDetail = (cause: unknown) => {
  const fault = faultOf(cause)
  return "detail" in fault ? fault.detail : fault._tag
}
