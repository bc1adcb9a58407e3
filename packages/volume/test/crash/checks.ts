/** The invariants of a reopened volume, while nothing else uses it. */
import assert from "node:assert/strict"
import { type BlobFault, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import type { Content } from "./contents.ts"
import type { Life } from "./life.ts"
import type { Entry, State } from "./model.ts"
import { allIds, bytesRead, checkAtHand, takeFacts } from "./work.ts"

const scan_limit_max = 1000
/** Maximum number of lives in which a blob may be put and damaged repeatedly. */
const over_times = 3

/** The result, or the fault's tag. */
const valueOrTag = async <A>(work: Promise<A>): Promise<A | BlobFault["_tag"]> => {
  try {
    return await work
  } catch (cause) {
    const { _tag } = faultOf(cause)
    if (_tag === "BlobStoreFailed") throw cause
    return _tag
  }
}

const checkMeta = ({ content }: Entry, meta: BlobMeta) => {
  const { size, checksum, labels, policy } = meta
  const { size: known_size, ...known } = content
  assert.deepEqual(
    { size, checksum, labels, policy },
    {
      size: BigInt(known_size),
      checksum: known.checksum,
      labels: known.labels,
      policy: known.policy,
    },
  )
}

/** Metadata of a blob that is stored intact; undefined otherwise. */
const readWhole = async ({ engine, at }: Life, entry: Entry) => {
  const { content } = entry
  const meta = await valueOrTag(engine.stat(content.id))
  if (typeof meta === "string") {
    assert(meta === "BlobNotFound" || entry.isSuspect(), `${content.id} has no stat: ${meta}`)
    return undefined
  }
  checkMeta(entry, meta)
  const read = await valueOrTag(bytesRead(engine, content.id, {}, at(), content.shard))
  if (typeof read === "string") {
    assert(entry.isSuspect(), `${content.id} has a stat, and is ${read}`)
    return undefined
  }
  assert(read.bytes.equals(content.bytes), `${content.id} came back with other bytes`)
  checkAtHand(engine, content)
  return meta
}

/** Checks one blob in every way, and informs the model. Returns whether it is stored. */
const look = async (life: Life, entry: Entry) => {
  const { engine } = life
  const { id, shard } = entry.content
  const meta = await readWhole(life, entry)
  const tombstone = await engine.tombstone(id)
  const [copy] = await engine.copiesOf([id])
  if (meta !== undefined) {
    assert(copy && copy.kind !== "tombstone", `${id} is stored, but is reported as absent`)
    assert.deepEqual([copy.shard, copy.created_at], [shard, meta.created_at])
    assert.equal(tombstone, undefined, `${id} is stored, and has a tombstone`)
    entry.last_put.seen(copy.put_at, !entry.isSuspect() && entry.states().size === 1)
    entry.seen("stored", meta, undefined)
    return true
  }
  // A corrupt copy was removed by the failed read.
  assert.equal(await valueOrTag(engine.stat(id)), "BlobNotFound")
  assert.equal(await valueOrTag(engine.get(id, {}, life.at())), "BlobNotFound")
  assert.equal(copy?.kind, tombstone === undefined ? undefined : "tombstone")
  const state: State = tombstone === undefined ? "absent" : "deleted"
  entry.seen(state, undefined, tombstone)
  return false
}

/** The volume's facts continue those that were delivered before. */
const checkJournal = async (life: Life, there: ReadonlyArray<Content>) => {
  const { engine, model } = life
  const is_damaged = life.isDamaged()
  const { recorded } = model
  const kept = await engine.scan(0, scan_limit_max)
  const [oldest] = kept
  const is_first = !oldest || oldest.cursor <= recorded.acknowledged() + 1
  assert(is_first || is_damaged, "the oldest facts are missing")
  const cursor = recorded.cursor()
  recorded.take(kept, is_damaged)
  const again = await engine.scan(cursor, scan_limit_max)
  assert.deepEqual(
    again,
    kept.filter((fact) => fact.cursor > cursor),
  )
  await takeFacts(life, scan_limit_max)
  const isSuspect = (id: BlobId) => model.entry(id).isSuspect() || recorded.isSuspect(id)
  const stored = there.map(({ id }) => id).filter((id) => !isSuspect(id))
  assert.deepEqual([...recorded.stored(isSuspect)].sort(), stored.toSorted(), "the journal lies")
}

const sum = (sizes: ReadonlyArray<number>) => sizes.reduce((total, size) => total + size, 0)

/** The size of a blob with a damaged record is unknown, so it may still be counted. */
const checkUsed = ({ model }: Life, payload_bytes: number, there: ReadonlyArray<Content>) => {
  const used = sum(there.map(({ bytes }) => bytes.length))
  const suspects = model.entries().filter((entry) => entry.isSuspect())
  const over = sum(suspects.map(({ content }) => content.bytes.length))
  const message = `${payload_bytes} bytes are used, and not ${used}`
  assert(suspects.length === 0 ? payload_bytes === used : payload_bytes >= used, message)
  assert(payload_bytes <= used + over_times * over, message)
}

/** All promises of an idle volume. */
export const check = async (life: Life) => {
  const { engine, model, random } = life
  const there: Array<Content> = []
  for (const entry of model.entries()) if (await look(life, entry)) there.push(entry.content)
  const ids = await allIds(engine, random)
  assert.deepEqual([...ids], there.map(({ id }) => id).toSorted())
  const { payload_bytes, blob_count, read_only, quarantined } = await engine.usage()
  assert.deepEqual({ blob_count, read_only }, { blob_count: there.length, read_only: false })
  checkUsed(life, payload_bytes, there)
  if (!model.recorded.isCut()) await checkJournal(life, there)
  if (life.isDamaged()) return
  assert.equal(quarantined, 0)
  assert.equal(engine.status().damaged_batches, 0)
}
