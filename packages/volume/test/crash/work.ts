/** The operations of a life: seeded, of several writers, with every response checked. */
import assert from "node:assert/strict"
import type { BlobRange, PutOrder, PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Seeded } from "../../../../test/world/seeded.ts"
import { type Content, contents } from "./contents.ts"
import { receive, release, renew, sendLate } from "./copies.ts"
import { cut, faultIn, type Life, origin, refuse } from "./life.ts"
import type { Entry } from "./model.ts"

const scan_limit = 20

const order = ({ labels, policy }: Content): PutOrder => ({
  labels,
  policy,
  origin,
  expected_id: undefined,
  if_none_match: false,
})

const upload = async ({ random, engine, at }: Life, content: Content, is_announced: boolean) => {
  const upload = engine.upload(order(content), is_announced ? content.bytes.length : undefined)
  try {
    for (const part of cut(random, content.bytes)) await upload.write(part)
    return await upload.finish(at())
  } catch (cause) {
    await upload.abort()
    throw cause
  }
}

const checkPut = (entry: Entry, { id, meta, created }: PutResult, was: ReadonlySet<string>) => {
  const { content } = entry
  assert.equal(id, content.id)
  assert.equal(meta.size, BigInt(content.size))
  assert.equal(meta.checksum, content.checksum)
  if (was.size > 1 || entry.isFlying("put")) return
  assert.equal(created, !was.has("stored"), `created is ${created} where it was ${[...was]}`)
  if (!created && entry.meta()) assert.deepEqual(meta, entry.meta())
}

/** Puts the entry's blob. Returns whether it was stored. */
export const put = async (life: Life, entry: Entry) => {
  const { random, engine, at } = life
  const { content } = entry
  const was = entry.states()
  const version = entry.version()
  entry.begin("put")
  const by_pieces = content.bytes.length > 20_000 || random.next() < 1 / 5
  life.note(`put ${content.id.slice(0, 8)} of ${content.bytes.length} bytes`)
  const stored = () => {
    if (content.shard || random.next() < 1 / 5) return receive(life, content)
    if (by_pieces) return upload(life, content, random.next() < 1 / 2)
    return engine.put(order(content), cut(random, content.bytes), at())
  }
  const result = await faultIn(stored())
  if ("fault" in result) {
    refuse(life, entry, "put", result.fault)
    return false
  }
  const is_alone = entry.version() === version + 1
  const { put_at } = { put_at: 0n, ...result.answer }
  entry.acknowledged("put", result.answer.meta)
  entry.last_put.noted(put_at, was)
  if (is_alone) checkPut(entry, result.answer, was)
  life.note(`stored ${content.id.slice(0, 8)}`)
  return true
}

const remove = async (life: Life, entry: Entry) => {
  entry.begin("delete")
  life.note(`delete ${entry.content.id.slice(0, 8)}`)
  const { id } = entry.content
  const { engine, random, model, at } = life
  const deleted =
    random.next() < 1 / 3
      ? engine.deleteClusterWide(id, origin, model.elsewhere())
      : engine.delete(id, origin, at())
  const result = await faultIn(deleted)
  if ("fault" in result) return refuse(life, entry, "delete", result.fault)
  entry.acknowledged("delete")
  life.reserve.deletes--
  life.note(`deleted ${entry.content.id.slice(0, 8)}`)
}

const abandon = async (life: Life, { content }: Entry) => {
  const { engine, random } = life
  const { bytes } = content
  const upload = engine.upload(order(content), random.next() < 1 / 2 ? bytes.length : undefined)
  const parts = cut(random, bytes)
  life.note(`abandon ${content.id.slice(0, 8)} of ${bytes.length} bytes`)
  const writing = async () => {
    for (const part of parts.slice(0, random.between(0, parts.length))) await upload.write(part)
  }
  const result = await faultIn(writing())
  // Half of them are left pending when the process ends.
  if ("fault" in result || random.next() < 1 / 2) await upload.abort()
  if ("fault" in result) assert(life.excuses.has(result.fault._tag), result.fault._tag)
}

/** All bytes of a read; of a shard, those of the shard. */
export const bytesRead = async (
  engine: NodeEngine,
  id: BlobId,
  range: BlobRange,
  at: bigint,
  shard?: Content["shard"],
) => {
  if (shard) assert.equal(faultOf(await engine.get(id, range, at).catch(own))._tag, "BlobNotFound")
  const reading = await (shard ? engine.read(id, range, at) : engine.get(id, range, at))
  if (reading.data) return { meta: reading.meta, bytes: Buffer.from(reading.data) }
  const windows: Array<Uint8Array> = []
  for await (const window of reading.windows()) {
    windows.push(Buffer.from(window))
    // Its memory belongs to other readers from here on.
    if ("recycle" in reading) reading.recycle?.(window)
  }
  return { meta: reading.meta, bytes: Buffer.concat(windows) }
}

/** A synchronous read, if it returns anything, returns the blob. */
export const checkAtHand = (engine: NodeEngine, { id, bytes }: Content) => {
  const { data } = engine.getCached?.(id) ?? {}
  if (data) assert(Buffer.from(data).equals(bytes), `${id} has other bytes at hand`)
}

const own = (cause: unknown) => cause

const rangeOf = (random: Seeded, size: number): BlobRange => {
  if (random.next() < 1 / 2) return {}
  const offset = random.between(0, size + 1)
  return random.next() < 1 / 3 ? { offset } : { offset, length: random.between(0, size) }
}

const get = async (life: Life, entry: Entry) => {
  const { random, engine, at } = life
  const { content } = entry
  const range = rangeOf(random, content.bytes.length)
  const version = entry.version()
  const before = entry.states()
  const result = await faultIn(bytesRead(engine, content.id, range, at(), content.shard))
  const is_settled = entry.version() === version
  if ("fault" in result) {
    const { _tag } = result.fault
    life.note(`get ${content.id.slice(0, 8)}: ${_tag}`)
    if (_tag === "BlobCorrupt") assert(entry.isSuspect(), `${content.id} is corrupt, unharmed`)
    else assert.equal(_tag, "BlobNotFound")
    if (is_settled && _tag === "BlobNotFound") {
      assert(before.has("absent") || before.has("deleted"), `${content.id} is lost`)
    }
    return
  }
  const { offset = 0, length = content.bytes.length } = range
  const expected = content.bytes.subarray(offset, offset + length)
  assert(result.answer.bytes.equals(expected), `${content.id} has other bytes`)
  checkAtHand(engine, content)
  if (is_settled) assert(before.has("stored"), `${content.id} is back`)
}

const stat = async ({ engine }: Life, entry: Entry) => {
  const version = entry.version()
  const before = entry.states()
  const result = await faultIn(engine.stat(entry.content.id))
  if (entry.version() !== version) return
  const state = "answer" in result ? before.has("stored") : before.size > 1 || !before.has("stored")
  assert(state, `${entry.content.id} has a stat that is wrong`)
  const known = before.size === 1 ? entry.meta() : undefined
  if ("answer" in result && known) assert.deepEqual(result.answer, known)
}

/** All ids, page by page. */
export const allIds = async (engine: NodeEngine, random: Seeded) => {
  const ids: Array<BlobId> = []
  const limit = random.between(1, contents.length + 1)
  for (let more = true; more; ) {
    const page = await engine.list(ids.at(-1) ?? "", "", limit)
    assert(page.ids.length <= limit && (page.ids.length > 0 || !page.has_more))
    ids.push(...page.ids)
    more = page.has_more
  }
  assert.deepEqual(ids, [...new Set(ids)].sort(), "a list is not in order")
  return new Set(ids)
}

const list = async ({ engine, random, model }: Life) => {
  const before = model.entries().map((entry) => ({
    entry,
    version: entry.version(),
    states: entry.states(),
  }))
  const ids = await allIds(engine, random)
  for (const { entry, version, states } of before) {
    if (entry.version() !== version) continue
    const { id } = entry.content
    if (ids.has(id)) assert(states.has("stored"), `a list has ${id}`)
    else assert(states.size > 1 || !states.has("stored"), `a list lacks ${id}`)
  }
}

/** Takes over facts and acknowledges them, as the delivery of the journal does. */
export const takeFacts = async ({ engine, model, excuses, isDamaged }: Life, limit: number) => {
  const { recorded } = model
  if (recorded.isCut()) return 0
  const facts = await engine.scan(recorded.cursor(), limit)
  assert(facts.length <= limit)
  recorded.take(facts, isDamaged())
  const cursor = recorded.cursor()
  // From now on the volume may drop them, whether or not it responds.
  recorded.acknowledge(cursor)
  const result = await faultIn(engine.acknowledge(cursor))
  if ("fault" in result) {
    const { _tag } = result.fault
    const is_excused = excuses.has(_tag) && _tag !== "BlobCapacityExceeded"
    assert(is_excused, `an acknowledgement answered ${_tag}`)
  }
  return facts.length
}

/** Longer than any reclaim run. */
const reclaim_ms_max = 60_000

const upkeep = async (life: Life, work: "compact" | "scrub" | "reclaim") => {
  life.note(work)
  // They write to the same files.
  if (work !== "scrub") life.reserve.deletes = 0
  const result = await faultIn(life.engine[work](reclaim_ms_max))
  if ("fault" in result) {
    assert(life.excuses.has(result.fault._tag), `${work}: ${JSON.stringify(result.fault)}`)
  }
}

const weights = {
  put: 40,
  delete: 14,
  abandon: 4,
  get: 18,
  stat: 4,
  list: 3,
  facts: 6,
  compact: 3,
  reclaim: 1,
  scrub: 2,
  release: 5,
  late: 3,
  renew: 6,
} as const
type Turn = keyof typeof weights

const turns = Object.entries(weights).flatMap(
  ([turn, weight]) => Array.from({ length: weight }, () => turn as Turn), // The keys of `weights`.
)

const [first_turn = "put", ...other_turns] = turns

/** Runs operations one at a time, if they must not overlap. */
const makeTurns = (life: Life) => {
  const { random, model } = life
  const busy = new Set<Turn>()
  const alone = async (turn: Turn, work: () => Promise<unknown>) => {
    if (busy.has(turn)) return
    busy.add(turn)
    await work()
    busy.delete(turn)
  }
  return async () => {
    const entry = random.pick(model.entries() as readonly [Entry, ...Array<Entry>]) // Never empty.
    const turn = random.pick([first_turn, ...other_turns])
    const is_leaving = entry.isFlying("delete") || entry.isFlying("release")
    const is_coming = entry.isFlying("put") || entry.isFlying("release")
    if (turn === "put" && !is_leaving) await put(life, entry)
    if (turn === "delete" && !is_coming) await remove(life, entry)
    if (turn === "release" && !entry.isFlying()) await release(life, entry)
    if (turn === "renew") await renew(life, entry)
    if (turn === "late" && !entry.isFlying()) await sendLate(life, entry)
    if (turn === "abandon") await abandon(life, entry)
    if (turn === "get") await get(life, entry)
    if (turn === "stat") await stat(life, entry)
    if (turn === "list") await list(life)
    if (turn === "facts") await alone(turn, () => takeFacts(life, random.between(1, scan_limit)))
    if (turn === "compact" || turn === "reclaim" || turn === "scrub") {
      await alone(turn, () => upkeep(life, turn))
    }
  }
}

/** Runs this many operations on `writers` writers, or fewer if the life ends before. */
export const work = async (life: Life, writers: number, operations: number) => {
  const turn = makeTurns(life)
  let left = operations
  const write = async () => {
    while (left-- > 0 && !life.isOver()) await turn()
  }
  await Promise.all(Array.from({ length: writers }, write))
}
