/**
 * The clients' knowledge: their puts and deletions, and the acknowledged ones. Puts of the same
 * bytes differ by their times, with which deletions are compared.
 */
import { blake3 } from "@napi-rs/blake-hash"
import type { BlobId, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import type { World } from "./world.ts"

export interface Content {
  readonly name: string
  readonly id: BlobId
  readonly bytes: Uint8Array
  /** The policy of all its puts. */
  readonly policy: ReplicationPolicy
}

/** Maximum clock skew, and maximum lead of a timestamp over its clock, in nanoseconds. */
const skew_ns = 6_000_000_000n

export interface Put {
  readonly node_id: string
  /** The put's time by its node's clock; without a response, the latest possible one. */
  put_at: bigint | undefined
  is_acknowledged: boolean
  is_over: boolean
  /** Local deletions may have removed so many copies that none need exist. */
  is_void: boolean
}

export interface Deletion {
  readonly node_id: string
  /** It certainly covers puts up to this time, by its node's clock. */
  readonly from: bigint
  /** It may cover puts up to this time. */
  until: bigint | undefined
  is_acknowledged: boolean
}

export interface Known {
  readonly content: Content
  readonly puts: Array<Put>
  /** Cluster-wide deletions. */
  readonly deletions: Array<Deletion>
  readonly local_deletions: Array<Deletion>
}

export interface Model {
  readonly blobs: ReadonlyArray<Known>
  readonly beginPut: (known: Known, node_id: string) => Put
  readonly beginDeletion: (known: Known, node_id: string, at: bigint) => Deletion
  readonly beginLocalDeletion: (known: Known, node_id: string, at: bigint) => Deletion
  readonly endPut: (put: Put, put_at: bigint | undefined) => void
  readonly endDeletion: (known: Known, deletion: Deletion, is_acknowledged: boolean) => void
  /** A process has died: its clients never get their pending responses. */
  readonly endProcess: (node_id: string) => void
  /** A disk is lost, with the local deletions on it. */
  readonly loseDisk: (node_id: string) => void
}

const newer = (one: bigint, other: bigint) => (one > other ? one : other)

/** Whether a blob must be readable: a put was acknowledged that no deletion can cover. */
export const isDue = ({ puts, deletions }: Known) =>
  puts.some(
    ({ put_at, is_acknowledged, is_void }) =>
      is_acknowledged &&
      !is_void &&
      put_at !== undefined &&
      deletions.every(({ until }) => until !== undefined && until < put_at),
  )

/** Whether no copy may be left: an acknowledged deletion is later than all puts. */
export const isGone = ({ puts, deletions }: Known) =>
  deletions.some(
    ({ from, is_acknowledged }) =>
      is_acknowledged && puts.every(({ put_at }) => put_at !== undefined && put_at <= from),
  )

/** Bytes derived from the name: different for each name. */
const bytesOf = (world: World, size: number, at: number) => {
  const bytes = new Uint8Array(size)
  for (let i = 0; i < Math.min(size, 8); i++) bytes[i] = world.random.between(0, 255)
  const first = bytes[0] ?? 0
  for (let i = 8; i < size; i++) bytes[i] = (i * (2 * at + 1) + (i >> 8) + first) & 0xff
  return bytes
}

export const makeContent = (
  world: World,
  { at, size, policy }: { at: number; size: number; policy: ReplicationPolicy },
): Content => {
  const bytes = bytesOf(world, size, at)
  // The first half of a BLAKE3 digest in hex is a BlobId.
  const id = blake3(bytes).toString("hex").slice(0, 32) as BlobId
  const name = `${policy.slice("REPLICATION_POLICY_".length)}-${at} (${id.slice(0, 8)})`
  return { name, id, bytes, policy }
}

export const makeModel = (world: World, contents: ReadonlyArray<Content>): Model => {
  const unique = new Map(contents.map((content) => [content.id, content]))
  const blobs = [...unique.values()].map(
    (content): Known => ({ content, puts: [], deletions: [], local_deletions: [] }),
  )
  const latest = () => world.now() + skew_ns

  const endPut = (put: Put, put_at: bigint | undefined) => {
    if (put.is_over) return
    put.is_over = true
    put.is_acknowledged = put_at !== undefined
    put.put_at = put_at ?? latest()
  }
  const endDeletion = ({ puts }: Known, deletion: Deletion, is_acknowledged: boolean) => {
    if (deletion.until !== undefined) return
    // It covers the latest copy that its node knows, if that is ahead of its clock.
    const made = puts.map(({ put_at }) => put_at ?? latest())
    deletion.until = made.reduce((one, other) => newer(one, other), latest())
    deletion.is_acknowledged = is_acknowledged
  }
  const begin = (list: Array<Deletion>, node_id: string, from: bigint) => {
    const deletion = { node_id, from, until: undefined, is_acknowledged: false }
    list.push(deletion)
    return deletion
  }
  return {
    blobs,
    endPut,
    endDeletion,
    beginPut: ({ puts }, node_id) => {
      const put: Put = {
        node_id,
        put_at: undefined,
        is_acknowledged: false,
        is_over: false,
        is_void: false,
      }
      puts.push(put)
      return put
    },
    beginDeletion: ({ deletions }, node_id, at) => begin(deletions, node_id, at),
    beginLocalDeletion: ({ local_deletions }, node_id, at) => begin(local_deletions, node_id, at),
    endProcess: (node_id) => {
      for (const known of blobs) {
        for (const put of known.puts) if (put.node_id === node_id) endPut(put, undefined)
        for (const deletion of [...known.deletions, ...known.local_deletions]) {
          if (deletion.node_id === node_id) endDeletion(known, deletion, false)
        }
      }
    },
    loseDisk: (node_id) => {
      for (const { local_deletions } of blobs) {
        const remaining = local_deletions.filter((deletion) => deletion.node_id !== node_id)
        local_deletions.splice(0, Infinity, ...remaining)
      }
    },
  }
}
