/** What a life does to a volume: seeded operations of several writers, each answer judged. */
import assert from "node:assert/strict"
import type { BlobOrigin } from "#actors/blob-storage/blob-admission.ts"
import type { BlobEngine, PutAnswer, PutOrder } from "#actors/blob-storage/blob-engine.ts"
import { type BlobFault, faultOf } from "#actors/blob-storage/blob-fault.ts"
import type { BlobRange } from "#actors/blob-storage/blob-store.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Seeded } from "../process/seeded.ts"
import { type Content, contents } from "./crash-contents.ts"
import type { Change, Entry, Model } from "./crash-model.ts"

/** An engine with the upkeep that otherwise runs by itself. */
export interface CrashEngine extends BlobEngine {
  readonly compact: () => Promise<unknown>
  readonly scrub: () => Promise<unknown>
  readonly status: () => { readonly damaged_batches: number }
}

export interface Life {
  readonly random: Seeded
  readonly engine: CrashEngine
  readonly model: Model
  /** The next time stamp, Unix nanoseconds; it may stand still, and now and then it goes back. */
  readonly at: () => bigint
  /** Which refusals of changes are right in this life, besides those of the port's rules. */
  readonly excuses: ReadonlySet<BlobFault["_tag"]>
  /** Whether files were damaged where they lie, so that a fact may be missing. */
  readonly isDamaged: () => boolean
  /** Deletes that are taken for certain, though the disk is full. */
  readonly reserve: { deletes: number }
  readonly note: (line: string) => void
  readonly isOver: () => boolean
}

const origin: BlobOrigin = { actor: "crash", request_id: "r-1", correlation_id: "c-1" }

const piece_bytes_max = 30_000
const scan_limit = 20

const order = ({ labels, policy }: Content): PutOrder => ({
  ...{ labels, policy, origin, expected_id: undefined, if_none_match: false },
})

/** Answers the fault where the promise is rejected with one. */
const faultIn = async <A>(work: Promise<A>): Promise<{ answer: A } | { fault: BlobFault }> => {
  try {
    return { answer: await work }
  } catch (cause) {
    const fault = faultOf(cause)
    if (fault._tag !== "BlobStoreFailed" || (cause instanceof Error && "fault" in cause)) {
      return { fault }
    }
    if (cause instanceof Error && "code" in cause) return { fault }
    throw cause
  }
}

/** Parts of the bytes, in copies of their own. */
const cut = (random: Seeded, bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const parts: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.between(1, piece_bytes_max))
    parts.push(bytes.slice(at, end))
    at = end
  }
  return parts
}

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

/** A change that was refused, which is right where the life has an excuse. */
const refuse = (life: Life, entry: Entry, change: Change, fault: BlobFault) => {
  life.note(`${change} ${entry.content.id.slice(0, 8)}: ${fault._tag}`)
  const detail = "detail" in fault ? fault.detail : ""
  assert(life.excuses.has(fault._tag), `${change} answered ${fault._tag}: ${detail}`)
  const is_full = fault._tag === "BlobCapacityExceeded"
  const is_due = is_full && change === "delete" && life.reserve.deletes > 0
  assert(!is_due, `a delete is refused: ${detail}`)
  if (is_full) entry.refused(change)
  else entry.doubted(change)
}

const checkPut = (entry: Entry, { id, meta, created }: PutAnswer, was: ReadonlySet<string>) => {
  const { content } = entry
  assert.equal(id, content.id)
  assert.equal(meta.size, BigInt(content.bytes.length))
  assert.equal(meta.checksum, content.checksum)
  if (was.size > 1 || entry.isFlying("put")) return
  assert.equal(created, !was.has("stored"), `created is ${created} where it was ${[...was]}`)
  if (!created && entry.meta()) assert.deepEqual(meta, entry.meta())
}

/** Puts the entry's blob; answers whether that was taken. */
export const put = async (life: Life, entry: Entry) => {
  const { random, engine, at } = life
  const { content } = entry
  const was = entry.states()
  const version = entry.version()
  entry.begin("put")
  const by_pieces = content.bytes.length > 20_000 || random.next() < 1 / 5
  life.note(`put ${content.id.slice(0, 8)} of ${content.bytes.length} bytes`)
  const stored = by_pieces
    ? upload(life, content, random.next() < 1 / 2)
    : engine.put(order(content), cut(random, content.bytes), at())
  const said = await faultIn(stored)
  if ("fault" in said) {
    refuse(life, entry, "put", said.fault)
    return false
  }
  const is_alone = entry.version() === version + 1
  entry.acknowledged("put", said.answer.meta)
  if (is_alone) checkPut(entry, said.answer, was)
  life.note(`stored ${content.id.slice(0, 8)}`)
  return true
}

const remove = async (life: Life, entry: Entry) => {
  entry.begin("delete")
  life.note(`delete ${entry.content.id.slice(0, 8)}`)
  const said = await faultIn(life.engine.delete(entry.content.id, origin, life.at()))
  if ("fault" in said) return refuse(life, entry, "delete", said.fault)
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
  const said = await faultIn(writing())
  // Half of them are left to themselves when the process ends.
  if ("fault" in said || random.next() < 1 / 2) await upload.abort()
  if ("fault" in said) assert(life.excuses.has(said.fault._tag), said.fault._tag)
}

/** All bytes that a read answers. */
export const bytesRead = async (engine: BlobEngine, id: BlobId, range: BlobRange, at: bigint) => {
  const reading = await engine.get(id, range, at)
  if (reading.data) return { meta: reading.meta, bytes: Buffer.from(reading.data) }
  const windows: Array<Uint8Array> = []
  for await (const window of reading.windows()) windows.push(window)
  return { meta: reading.meta, bytes: Buffer.concat(windows) }
}

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
  const said = await faultIn(bytesRead(engine, content.id, range, at()))
  const is_settled = entry.version() === version
  if ("fault" in said) {
    const { _tag } = said.fault
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
  assert(said.answer.bytes.equals(expected), `${content.id} has other bytes`)
  if (is_settled) assert(before.has("stored"), `${content.id} is back`)
}

const stat = async ({ engine }: Life, entry: Entry) => {
  const version = entry.version()
  const before = entry.states()
  const said = await faultIn(engine.stat(entry.content.id))
  if (entry.version() !== version) return
  const state = "answer" in said ? before.has("stored") : before.size > 1 || !before.has("stored")
  assert(state, `${entry.content.id} has a stat that is wrong`)
  const known = before.size === 1 ? entry.meta() : undefined
  if ("answer" in said && known) assert.deepEqual(said.answer, known)
}

/** All identifiers, page by page. */
export const allIds = async (engine: BlobEngine, random: Seeded) => {
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
    ...{ entry, version: entry.version(), states: entry.states() },
  }))
  const ids = await allIds(engine, random)
  for (const { entry, version, states } of before) {
    if (entry.version() !== version) continue
    const { id } = entry.content
    if (ids.has(id)) assert(states.has("stored"), `a list has ${id}`)
    else assert(states.size > 1 || !states.has("stored"), `a list lacks ${id}`)
  }
}

/** Takes facts over and lets the volume forget them, as the process of the journal does. */
export const takeFacts = async ({ engine, model, excuses, isDamaged }: Life, limit: number) => {
  const { recorded } = model
  if (recorded.isCut()) return 0
  const facts = await engine.scan(recorded.cursor(), limit)
  assert(facts.length <= limit)
  recorded.take(facts, isDamaged())
  const cursor = recorded.cursor()
  // From now on the volume may forget them, whether or not it answers.
  recorded.acknowledge(cursor)
  const said = await faultIn(engine.acknowledge(cursor))
  if ("fault" in said) {
    const { _tag } = said.fault
    const is_excused = excuses.has(_tag) && _tag !== "BlobCapacityExceeded"
    assert(is_excused, `an acknowledgement answered ${_tag}`)
  }
  return facts.length
}

const upkeep = async (life: Life, work: "compact" | "scrub") => {
  life.note(work)
  // It writes to the same files.
  if (work === "compact") life.reserve.deletes = 0
  const said = await faultIn(life.engine[work]())
  if ("fault" in said) {
    assert(life.excuses.has(said.fault._tag), `${work}: ${JSON.stringify(said.fault)}`)
  }
}

type Turn = "put" | "delete" | "abandon" | "get" | "stat" | "list" | "facts" | "compact" | "scrub"

const weights: Readonly<Record<Turn, number>> = {
  ...{ put: 40, delete: 14, abandon: 4, get: 18, stat: 4, list: 3, facts: 6, compact: 3, scrub: 2 },
}

const turns = Object.entries(weights).flatMap(
  ([turn, weight]) => Array.from({ length: weight }, () => turn as Turn), // The keys of `weights`.
)

const [first_turn = "put", ...other_turns] = turns

/** One after the other; what must not run twice at once waits for its turn. */
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
    if (turn === "put" && !entry.isFlying("delete")) await put(life, entry)
    if (turn === "delete" && !entry.isFlying("put")) await remove(life, entry)
    if (turn === "abandon") await abandon(life, entry)
    if (turn === "get") await get(life, entry)
    if (turn === "stat") await stat(life, entry)
    if (turn === "list") await list(life)
    if (turn === "facts") await alone(turn, () => takeFacts(life, random.between(1, scan_limit)))
    if (turn === "compact" || turn === "scrub") await alone(turn, () => upkeep(life, turn))
  }
}

/** Lets `writers` do so many operations together, or fewer where the life is over before. */
export const work = async (life: Life, writers: number, operations: number) => {
  const turn = makeTurns(life)
  let left = operations
  const write = async () => {
    while (left-- > 0 && !life.isOver()) await turn()
  }
  await Promise.all(Array.from({ length: writers }, write))
}
