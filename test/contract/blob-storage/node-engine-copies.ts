/** Copies for the contract of a node's store: transfers and queries from other nodes. */
import assert from "node:assert/strict"
import { blake3 } from "@napi-rs/blake-hash"
import type { BlobRange, PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { CopyOrder, NodeEngine, Shard } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { copyBytes } from "#volume"
import { noise } from "./engine-bytes.ts"

export const origin = { actor: "node:another", request_id: "r-1", correlation_id: "c-1" }

export const putOrder: PutOrder = {
  labels: { kind: "plain" },
  policy: "REPLICATION_POLICY_REPLICA3",
  origin,
  expected_id: undefined,
  if_none_match: false,
}

/** 32 hex digits: an identifier that no blob has. */
export const no_id = "00000000000000000000000000000000" as BlobId

export const hashOf = (bytes: Uint8Array) => blake3(bytes).toString("hex")
// A BlobId is the first half of a BLAKE3 digest in hex.
export const idOf = (bytes: Uint8Array) => hashOf(bytes).slice(0, 32) as BlobId

/** A whole copy of the bytes, first put at 500 ns. */
export const wholeOf = (bytes: Uint8Array, changes: Partial<CopyOrder> = {}): CopyOrder => ({
  id: idOf(bytes),
  checksum: hashOf(bytes),
  size: bytes.length,
  labels: { a: "1" },
  origin,
  policy: "REPLICATION_POLICY_REPLICA2",
  created_at: 500n,
  shard: undefined,
  ...changes,
})

export const shardOf = (bytes: Uint8Array, shard: Shard, changes: Partial<CopyOrder> = {}) =>
  wholeOf(bytes, { policy: "REPLICATION_POLICY_EC42", shard, ...changes })

/** Stand-in bytes for a blob's shard. */
export const shardBytes = ({ size, shard }: CopyOrder) =>
  noise(7 + (shard?.index ?? 0), copyBytes(size, shard))

/** Sends a copy in parts; `bytes` is the announced size. */
export const send = async (
  engine: NodeEngine,
  order: CopyOrder,
  data: Uint8Array,
  at = 1000n,
  bytes = data.length,
) => {
  const receiving = engine.receive(order, bytes)
  try {
    for (let from = 0; from < data.length; from += 30_000) {
      await receiving.write(data.slice(from, from + 30_000))
    }
    return await receiving.finish(at)
  } finally {
    await receiving.abort()
  }
}

export const sendShard = (engine: NodeEngine, order: CopyOrder, at?: bigint) =>
  send(engine, order, shardBytes(order), at)

export const collect = async (windows: AsyncIterable<Uint8Array>) => {
  const parts: Array<Uint8Array> = []
  for await (const part of windows) parts.push(part)
  return Buffer.concat(parts)
}

/** This node's copy of a blob, and all bytes of the range. */
export const readAll = async (engine: NodeEngine, id: BlobId, range: BlobRange = {}) => {
  const reading = await engine.read(id, range, 2000n)
  const { copy, meta, data } = reading
  const windows = await collect(reading.windows())
  if (data) assert(windows.equals(data))
  return { copy, meta, bytes: windows }
}

export const getAll = async (engine: NodeEngine, id: BlobId) =>
  collect((await engine.get(id, {}, 2000n)).windows())

/** The tag of the fault with which the work rejects or throws. */
export const tagIn = async (work: () => Promise<unknown>) => {
  try {
    await work()
    return "none"
  } catch (cause) {
    return faultOf(cause)._tag
  }
}

export const kindsOf = async (engine: NodeEngine) =>
  (await engine.scan(0, 1000)).map(({ kind }) => kind)

export const one = async (engine: NodeEngine, id: BlobId) => (await engine.copiesOf([id]))[0]
