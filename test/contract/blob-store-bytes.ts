/**
 * Bytes and puts for the blob store's contract.
 */
import { Effect, Stream } from "effect"
import type { BlobPut, BlobRange, BlobStore, OpenBlob } from "#actors/blob-storage/blobs/store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

type Store = BlobStore["Service"]

/** What is plain about a store without blobs. */
export const plain = { payload_bytes: 0, blob_count: 0, read_only: false }

/** Bytes that look random and are the same for the same seed: xorshift, 32 bits. */
export const noise = (seed: number, size: number): Uint8Array => {
  const words = new Uint32Array(Math.ceil(size / 4))
  let state = (seed + 1) * 2654435761
  for (let word = 0; word < words.length; word++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[word] = state
  }
  return new Uint8Array(words.buffer, 0, size)
}

/** The bytes as a stream of parts of `cut` bytes, made as they are taken. */
export const parts = (bytes: Uint8Array, cut: number) =>
  Stream.fromIterable(
    Array.from({ length: Math.ceil(bytes.length / cut) }, (_, part) => part),
  ).pipe(
    Stream.rechunk(1),
    Stream.map((part) => bytes.subarray(part * cut, (part + 1) * cut)),
  )

const origin = { actor: "tester", request_id: "r-1", correlation_id: "c-1" }

const defaults: BlobPut = { labels: {}, policy: "REPLICATION_POLICY_UNSPECIFIED", origin }

/** Puts bytes, or a stream of them, with what is said in `changes`. */
export const put = Object.assign(
  <E = never>(
    store: Store,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E>,
    changes: Partial<BlobPut> = {},
  ) =>
    store.put(
      { ...defaults, ...changes },
      bytes instanceof Uint8Array ? Stream.succeed(bytes) : bytes,
    ),
  { origin },
)

export const bytesOf = ({ bytes }: OpenBlob) => Stream.mkUint8Array(bytes)

export const readAll = (store: Store, id: BlobId, range: BlobRange = {}) =>
  Effect.flatMap(store.get(id, range), bytesOf)
