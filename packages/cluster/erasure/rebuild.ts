/**
 * Shards that were lost, made of the others, and given to the nodes that are to have them.
 *
 * Source: document 1 §1 InternalService, §2 Replication policies; DECISIONS, document 1, integrity;
 * decision 0124.
 */

import { store_origin } from "#actors/blob-storage/blobs/admission.ts"
import { thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { HeldCopy } from "#actors/blob-storage/node-engine.ts"
import type { Reason } from "#actors/blob-storage/peers.ts"
import { parity_shards, rebuiltUnits, type Striping, striping, type Units } from "#erasure"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { metaOfShards } from "./get.ts"
import type { ErasureParts } from "./layout.ts"
import { findReadable, searchShards } from "./search.ts"
import { readStripes, type StripeReading } from "./sources.ts"
import { isStored, openStores, type Stored, type Target } from "./stores.ts"

export interface RebuildOrder {
  readonly id: BlobId
  /** One or two shards, and who is to have each. */
  readonly missing: ReadonlyArray<Target>
  /** The shards that were met already, by node. */
  readonly known: ReadonlyMap<string, HeldCopy>
  readonly reason: Reason
  /** Waits until so many bytes more may be read and sent. */
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

const find = async (parts: ErasureParts, { id, known, missing }: RebuildOrder) => {
  const search = searchShards(parts, id, known)
  const data_shards = await findReadable(search)
  const holders = search.holders().filter(({ copy }) => copy.shard?.data_shards === data_shards)
  const [first] = holders
  if (data_shards === undefined || first === undefined) {
    if (search.unanswered() === 0) throw thrown({ _tag: "BlobNotFound", id })
    throw thrown({ _tag: "BlobUnreachable", detail: "Too few shards of the blob were found." })
  }
  if (missing.some(({ index }) => index >= data_shards + parity_shards)) {
    throw new Error("the blob has no such shard")
  }
  let { put_at } = first.copy
  for (const { copy } of holders) if (copy.put_at > put_at) put_at = copy.put_at
  return { search, holders, data_shards, copy: first.copy, put_at }
}

/** The units that are to be made, and nothing in the place of the others. */
const only = (units: Units, missing: ReadonlyArray<Target>) =>
  units.map((unit, index) => (missing.some((target) => target.index === index) ? unit : undefined))

interface Work {
  readonly order: RebuildOrder
  readonly plan: Striping
  readonly checksum: string
}

/** Makes stripe after stripe; the last one is handed out once the blob's hash agrees. */
const rebuilt = async function* (
  parts: ErasureParts,
  { order, plan, checksum }: Work,
  reading: StripeReading,
) {
  const { id, missing, pace } = order
  const code = parts.openCode(plan.data_shards)
  const hash = parts.hasher()
  let left = plan.size
  let kept: ReadonlyArray<Uint8Array | undefined> | undefined
  for (let stripe = 0; stripe < plan.stripes; stripe++) {
    await pace?.((plan.data_shards + missing.length) * plan.unitOf(stripe))
    const given = await reading.next(stripe)
    if (kept) yield kept
    const units = rebuiltUnits(code, given)
    for (const unit of units.slice(0, plan.data_shards)) {
      hash.update(unit.subarray(0, left))
      left = Math.max(0, left - unit.length)
    }
    kept = only(units, missing)
  }
  if (hash.digest() !== checksum) {
    throw thrown({ _tag: "BlobCorrupt", id, detail: "The shards do not make the blob." })
  }
  if (kept) yield kept
}

const answerOf = (stored: ReadonlyArray<Stored>): Rebuilt => ({
  rebuilt: stored.filter(isStored).map(({ index, peer }) => ({ index, node_id: peer.node_id })),
  failed: stored.flatMap((one) =>
    isStored(one) ? [] : [{ index: one.index, node_id: one.peer.node_id, cause: one.cause }],
  ),
})

/**
 * Makes the missing shards of a blob and gives each to its node, reading the others once. Says what
 * became of each. Fails with BlobNotFound or BlobUnreachable where there are too few to make them
 * of, and with BlobCorrupt where those do not make the blob: then no shard is stored.
 */
export const rebuildShards = async (parts: ErasureParts, order: RebuildOrder): Promise<Rebuilt> => {
  const { id, missing, reason } = order
  const { search, holders, data_shards, copy, put_at } = await find(parts, order)
  const { size, checksum } = copy
  const plan = striping(size, data_shards)
  const { labels, policy, created_at } = await metaOfShards(parts, holders)
  const shipped = { id, checksum, size, policy, labels, created_at, put_at }
  const shipping = {
    order: { ...shipped, origin: store_origin },
    data_shards,
    shard_bytes: plan.shard_bytes,
    reason,
  }
  const reading = readStripes({ parts, search, plan, end: plan.stripes, id })
  const stores = openStores(parts, shipping, missing, missing.length)
  try {
    for await (const units of rebuilt(parts, { order, plan, checksum }, reading)) {
      await stores.push(units)
    }
    return answerOf(await stores.finish())
  } catch (cause) {
    await stores.abort(new Error("the shards could not be made"))
    throw cause
  } finally {
    reading.close()
  }
}
