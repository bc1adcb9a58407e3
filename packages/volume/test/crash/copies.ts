/** A cluster's effects on a volume during a life: copies arrive, and some are released. */
import assert from "node:assert/strict"
import type { PutResult } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { CopyOrder, HeldCopy } from "#actors/blob-storage/ports/node-engine.ts"
import type { Content } from "./contents.ts"
import { cut, faultIn, type Life, origin, refuse } from "./life.ts"
import type { Entry } from "./model.ts"

const orderOf = (content: Content, created_at: bigint): CopyOrder => {
  const { id, hash, size, labels, policy, shard } = content
  return { id, checksum: hash, size, labels, policy, shard, created_at, origin }
}

/**
 * Sends a copy that another node made at some time: now by its own clock, unless given. If the
 * present copy turns out to be damaged meanwhile, sends it again.
 */
export const receive = async (life: Life, content: Content, made_at = life.model.elsewhere()) => {
  try {
    return await receiveOnce(life, content, made_at)
  } catch (cause) {
    if (!life.isDamaged() || faultOf(cause)._tag !== "BlobStoreFailed") throw cause
    return receiveOnce(life, content, made_at)
  }
}

const receiveOnce = async (
  { random, engine, at }: Life,
  content: Content,
  made_at: bigint,
): Promise<PutResult & Pick<HeldCopy, "put_at">> => {
  const { id, bytes, checksum, labels, policy } = content
  const receiving = engine.receive(orderOf(content, made_at), bytes.length)
  try {
    for (const part of cut(random, bytes)) await receiving.write(part)
    const { copy, created } = await receiving.finish(at())
    const { created_at, put_at } = copy
    const times = { created_at, modified_at: created_at }
    return {
      id,
      created,
      put_at,
      meta: { size: BigInt(copy.size), ...times, checksum, labels, policy },
    }
  } finally {
    await receiving.abort()
  }
}

/** Releases the present copy, if any. */
export const release = async (life: Life, entry: Entry) => {
  const { engine, at } = life
  const { id } = entry.content
  entry.begin("release")
  const letGo = async () => {
    const [copy] = await engine.copiesOf([id])
    return copy !== undefined && copy.kind !== "tombstone"
      ? engine.release(id, copy.stored_at, at())
      : false
  }
  const result = await faultIn(letGo())
  if ("fault" in result) return refuse(life, entry, "release", result.fault)
  if (result.answer) entry.acknowledged("release")
  else entry.refused("release")
  life.note(`${result.answer ? "let" : "did not let"} ${id.slice(0, 8)} go`)
}

/** Sends a copy as old as possible: no deletion precedes it. */
export const sendLate = async (life: Life, entry: Entry) => {
  const { content } = entry
  const was = entry.states()
  const version = entry.version()
  entry.begin("put")
  const result = await faultIn(receive(life, content, 1n))
  const is_alone = entry.version() === version + 1
  if ("fault" in result) {
    if (result.fault._tag !== "BlobDeletedHere") return refuse(life, entry, "put", result.fault)
    assert(!is_alone || was.has("deleted"), `${content.id} was never deleted`)
    life.note(`late ${content.id.slice(0, 8)} is refused`)
    return entry.refused("put")
  }
  const is_deleted = was.size === 1 && was.has("deleted")
  assert(!is_alone || !is_deleted, `${content.id} was deleted, and is sent again`)
  life.note(`late ${content.id.slice(0, 8)} is taken`)
  entry.acknowledged("put", result.answer.meta)
  entry.last_put.noted(result.answer.put_at, was)
}

/** Reports a put at another node, later than any before. */
export const renew = async (life: Life, entry: Entry) => {
  const { engine, model, at } = life
  const { id } = entry.content
  const put_at = model.elsewhere()
  const was = entry.states()
  const version = entry.version()
  life.note(`renew ${id.slice(0, 8)} to ${put_at}`)
  const result = await faultIn(engine.renew(id, put_at, at()))
  if ("fault" in result) {
    const { _tag } = result.fault
    return assert(life.excuses.has(_tag), `renew answered ${_tag}`)
  }
  const copy = result.answer
  if (entry.version() !== version) return
  assert(copy ? was.has("stored") : was.size > 1 || !was.has("stored"), `${id} is here or not`)
  if (copy === undefined) return
  assert(copy.put_at >= put_at, `${id} is of the put at ${copy.put_at}, not of that at ${put_at}`)
  entry.last_put.noted(copy.put_at, was)
}
