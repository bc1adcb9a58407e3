/** Bytes and puts for the contract of a blob engine. */
import type {
  BlobEngine,
  BlobRange,
  BlobReading,
  PutOrder,
} from "#actors/blob-storage/ports/engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"

/** The usage of an engine without blobs. */
export const plain = { payload_bytes: 0, blob_count: 0, read_only: false }

/** Pseudorandom bytes, the same for the same seed: xorshift, 32 bits. */
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

/** The bytes in parts of `cut` bytes. */
export const parts = (bytes: Uint8Array, cut: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / cut) }, (_, part) =>
    bytes.subarray(part * cut, (part + 1) * cut),
  )

const origin = { actor: "tester", request_id: "r-1", correlation_id: "c-1" }

const defaults: PutOrder = {
  labels: {},
  policy: "REPLICATION_POLICY_UNSPECIFIED",
  origin,
  expected_id: undefined,
  if_none_match: false,
}

/** Changes to the order in `defaults`, and the time of the put. */
type Changes = Partial<PutOrder> & { readonly at?: bigint }

type Puts = Pick<BlobEngine, "put" | "upload">

/** Puts bytes in one call, or uploads parts of them. */
export const put = Object.assign(
  async (
    engine: Puts,
    bytes: Uint8Array | Iterable<Uint8Array>,
    { at = 1000n, ...changes }: Changes = {},
  ) => {
    const order = { ...defaults, ...changes }
    if (bytes instanceof Uint8Array) return engine.put(order, [bytes], at)
    const upload = engine.upload(order, undefined)
    try {
      for (const part of bytes) await upload.write(part)
      return await upload.finish(at)
    } finally {
      await upload.abort()
    }
  },
  { origin, order: defaults },
)

/** All bytes that a read returns. */
export const bytesOf = async ({ windows }: BlobReading) => {
  const found: Array<Uint8Array> = []
  for await (const window of windows()) found.push(window)
  return Buffer.concat(found)
}

/** All bytes of the range. */
export const readAll = async (engine: Pick<BlobEngine, "get">, id: BlobId, range: BlobRange = {}) =>
  bytesOf(await engine.get(id, range, 2000n))
