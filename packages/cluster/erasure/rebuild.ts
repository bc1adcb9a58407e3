/**
 * Rebuilds lost shards from the others, and sends them to the nodes that store them.
 *
 * Source: document 1 §1 InternalService, §2 Replication policies; DECISIONS, document 1, integrity;
 * decision 0124.
 */

import { faultError } from "#actors/blob-storage/ports/fault.ts"
import type { HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import { store_origin } from "#actors/blob-storage/ports/origin.ts"
import type { Reason } from "#actors/blob-storage/ports/peers.ts"
import { parity_shards, rebuiltUnits, type Striping, striping, type Units } from "#erasure"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { metaOfShards } from "./get.ts"
import type { ErasureParts } from "./layout.ts"
import { findReadable, searchShards } from "./search.ts"
import { readStripes, type StripeReading } from "./sources.ts"
import { isStored, openStores, type Stored, type Target } from "./stores.ts"

export interface RebuildOrder {
  readonly id: BlobId
  /** One or two shards, and the node for each. */
  readonly missing: ReadonlyArray<Target>
  /** Shards found before, by node. */
  readonly known: ReadonlyMap<string, HeldCopy>
  readonly reason: Reason
  /** Waits until this many bytes may be read and sent. */
  readonly pace?: (bytes: number) => Promise<void> | undefined
}

export interface Rebuilt {
  readonly rebuilt: ReadonlyArray<{ readonly index: number; readonly node_id: string }>
  readonly failed: ReadonlyArray<{
    readonly index: number
    readonly node_id: string
    readonly cause: Error
  }>
}

const findShards = async (parts: ErasureParts, { id, known, missing }: RebuildOrder) => {
  const search = searchShards(parts, id, known)
  const data_shards = await findReadable(search)
  const holders = search.holders().filter(({ copy }) => copy.shard?.data_shards === data_shards)
  const [first] = holders
  if (data_shards === undefined || first === undefined) {
    if (search.unanswered() === 0) throw faultError({ _tag: "BlobNotFound", id })
    throw faultError({ _tag: "BlobUnreachable", detail: "Too few shards of the blob were found." })
  }
  if (missing.some(({ index }) => index >= data_shards + parity_shards)) {
    throw new Error("the blob has no shard of this index")
  }
  let { put_at } = first.copy
  for (const { copy } of holders) if (copy.put_at > put_at) put_at = copy.put_at
  return { search, holders, data_shards, copy: first.copy, put_at }
}

/** Keeps only the units of missing shards. */
const onlyMissing = (units: Units, missing: ReadonlyArray<Target>) =>
  units.map((unit, index) => (missing.some((target) => target.index === index) ? unit : undefined))

interface Work {
  readonly order: RebuildOrder
  readonly plan: Striping
  readonly checksum: string
}

/** Rebuilds stripe by stripe; the last stripe is held back until the blob's hash matches. */
const rebuilt = async function* (
  parts: ErasureParts,
  { order, plan, checksum }: Work,
  reading: StripeReading,
) {
  const { id, missing, pace } = order
  const code = parts.openCode(plan.data_shards)
  const hash = parts.hasher()
  let left = plan.size
  let pending: ReadonlyArray<Uint8Array | undefined> | undefined
  for (let stripe = 0; stripe < plan.stripes; stripe++) {
    await pace?.((plan.data_shards + missing.length) * plan.unitOf(stripe))
    const available = await reading.next(stripe)
    if (pending) yield pending
    const units = rebuiltUnits(code, available)
    for (const unit of units.slice(0, plan.data_shards)) {
      hash.update(unit.subarray(0, left))
      left = Math.max(0, left - unit.length)
    }
    pending = onlyMissing(units, missing)
  }
  if (hash.digest() !== checksum) {
    throw faultError({
      _tag: "BlobCorrupt",
      id,
      detail: "The shards do not match the checksum of the blob.",
    })
  }
  if (pending) yield pending
}

const resultOf = (stored: ReadonlyArray<Stored>): Rebuilt => ({
  rebuilt: stored.filter(isStored).map(({ index, peer }) => ({ index, node_id: peer.node_id })),
  failed: stored.flatMap((one) =>
    isStored(one) ? [] : [{ index: one.index, node_id: one.peer.node_id, cause: one.cause }],
  ),
})

/**
 * Rebuilds the missing shards of a blob and sends each to its node, reading the other shards once.
 * Returns the outcome of each shard. Rejects with BlobNotFound or BlobUnreachable if too few shards
 * are available, and with BlobCorrupt if they do not match the blob's checksum; then no shard is
 * stored.
 */
export const rebuildShards = async (parts: ErasureParts, order: RebuildOrder): Promise<Rebuilt> => {
  const { id, missing, reason } = order
  const { search, holders, data_shards, copy, put_at } = await findShards(parts, order)
  const { size, checksum } = copy
  const plan = striping(size, data_shards)
  const { labels, policy, created_at } = await metaOfShards(parts, holders)
  const copy_order = { id, checksum, size, policy, labels, created_at, put_at }
  const transfer = {
    order: { ...copy_order, origin: store_origin },
    data_shards,
    shard_bytes: plan.shard_bytes,
    reason,
  }
  const reading = readStripes({ parts, search, plan, end: plan.stripes, id })
  const stores = openStores(parts, transfer, missing, missing.length)
  try {
    for await (const units of rebuilt(parts, { order, plan, checksum }, reading)) {
      await stores.push(units)
    }
    return resultOf(await stores.finish())
  } catch (cause) {
    await stores.abort(new Error("the shards could not be rebuilt"))
    throw cause
  } finally {
    reading.close()
  }
}
