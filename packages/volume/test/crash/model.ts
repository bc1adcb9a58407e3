/**
 * The facts that a volume must have, given its responses. A change without a response may have
 * happened or not: until a read decides, both are correct.
 */
import assert from "node:assert/strict"
import type { BlobFact } from "#actors/blob-storage/ports/engine.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { type Content, contentById, contents } from "./contents.ts"

export type State = "absent" | "stored" | "deleted"
export type Change = "put" | "delete" | "release"

const changes: ReadonlyArray<Change> = ["put", "delete", "release"]
const outcomes = { put: "stored", delete: "deleted", release: "absent" } as const

const all_states: ReadonlySet<State> = new Set<State>(["absent", "stored", "deleted"])
const gone_states: ReadonlySet<State> = new Set<State>(["absent", "deleted"])

/** The last put of a blob that the volume certainly knows of; 0: none. */
const makeLastPut = ({ id }: Content) => {
  let put_at = 0n
  return {
    /** A put was acknowledged, of a blob in one of these states. */
    noted: (at: bigint, before: ReadonlySet<State>) => {
      const was_there = before.size === 1 && before.has("stored")
      if (!was_there || at > put_at) put_at = at
    },
    /** A read decided. */
    seen: (at: bigint, is_certain: boolean) => {
      assert(!is_certain || at >= put_at, `${id} is of the put at ${at}, not of that at ${put_at}`)
      put_at = at
    },
  }
}

/** The state of one blob. */
const makeEntry = (content: Content) => {
  let settled: ReadonlySet<State> = new Set<State>(["absent"])
  const flying: Record<Change, number> = { put: 0, delete: 0, release: 0 }
  let version = 0
  let is_suspect = false
  let is_gone = false
  let meta: BlobMeta | undefined
  let buried: { readonly at: bigint; readonly version: number } | undefined

  return {
    ...{ content, last_put: makeLastPut(content) },
    /** Rises with each start and end of a change: an equal value means an unchanged state. */
    version: () => version,
    isFlying: (change?: Change) =>
      change === undefined ? changes.some((one) => flying[one] > 0) : flying[change] > 0,
    /** All states that are correct now. */
    states: (): ReadonlySet<State> => {
      if (is_suspect) return is_gone ? gone_states : all_states
      const states = new Set(settled)
      for (const change of changes) {
        if (flying[change] > 0) states.add(outcomes[change])
      }
      return states
    },
    /** Metadata, while the blob is certainly stored. */
    meta: () => (is_suspect ? undefined : meta),
    isSuspect: () => is_suspect,
    begin: (change: Change) => {
      version++
      if (change === "put") is_gone = false
      flying[change]++
    },
    acknowledged: (change: Change, noted?: BlobMeta) => {
      version++
      flying[change]--
      settled = new Set([outcomes[change]])
      meta = noted
    },
    /** The response was that nothing changed. */
    refused: (change: Change) => {
      version++
      flying[change]--
    },
    /** The change failed, with an unknown outcome. */
    doubted: (change: Change) => {
      version++
      flying[change]--
      settled = new Set([...settled, outcomes[change]])
    },
    /** The process ended, with pending changes undecided. */
    end() {
      if (!is_suspect) settled = this.states()
      if (this.isFlying()) version++
      for (const change of changes) flying[change] = 0
    },
    /** A read decided. `tombstone` is what the volume reports. */
    seen(state: State, noted: BlobMeta | undefined, tombstone: bigint | undefined) {
      assert(!is_gone || state !== "stored", `${content.id} was deleted, and is back`)
      if (is_suspect) return
      const is_known = settled.size === 1
      assert(settled.has(state), `${content.id} is ${state}, not ${[...settled].join(" or ")}`)
      if (is_known && meta && noted) assert.deepEqual(noted, meta, `${content.id} was changed`)
      if (buried?.version === version && state === "deleted") {
        assert.equal(tombstone, buried.at, `${content.id} has another tombstone`)
      }
      settled = new Set([state])
      meta = noted
      buried = tombstone === undefined ? undefined : { at: tombstone, version }
    },
    /**
     * The blob was damaged on disk. From now on every state is correct, except wrong content; if
     * nothing was damaged before, a deleted blob stays deleted.
     */
    suspect: (is_first: boolean) => {
      version++
      const is_deleted = settled.size === 1 && settled.has("deleted") && flying.put === 0
      is_gone = is_first && (is_suspect ? is_gone : is_deleted)
      is_suspect = true
    },
  }
}

export type Entry = ReturnType<typeof makeEntry>

const checkFact = (fact: BlobFact) => {
  // Only the id of a copy with a damaged record is known.
  if (fact.kind === "quarantined" || fact.kind === "lost") return
  const { labels, policy, checksum, size, shard, bytes } = contentById(fact.id)
  assert.equal(fact.size, size)
  assert.deepEqual(fact.shard, shard && { ...shard, bytes: bytes.length })
  assert.equal(fact.checksum, checksum)
  assert.equal(fact.policy, policy)
  if (fact.kind === "stored") assert.deepEqual(fact.labels ?? {}, labels)
}

/** The journal as delivered elsewhere, from its first fact on. */
const makeRecorded = () => {
  const facts: Array<BlobFact> = []
  const by_cursor = new Map<number, BlobFact>()
  let acknowledged = 0
  let is_cut = false
  const suspects = new Set<BlobId>()
  return {
    /** A record of this blob was damaged, and possibly a fact with it. */
    suspect: (id: BlobId) => void suspects.add(id),
    isSuspect: (id: BlobId) => suspects.has(id),
    /** Its end may be lost and its cursors reused: it proves nothing any more. */
    cut: () => {
      is_cut = true
    },
    isCut: () => is_cut,
    cursor: () => facts.at(-1)?.cursor ?? 0,
    acknowledged: () => acknowledged,
    acknowledge: (cursor: number) => {
      acknowledged = Math.max(acknowledged, cursor)
    },
    /**
     * Facts that are delivered again must be unchanged; others follow without a gap, unless some
     * may have been damaged.
     */
    take: (noted: ReadonlyArray<BlobFact>, may_lack: boolean) => {
      for (const fact of noted) {
        const known = by_cursor.get(fact.cursor)
        if (known) assert.deepEqual(fact, known, `fact ${fact.cursor} was changed`)
        if (known) continue
        const before = facts.at(-1)
        const follows = fact.cursor - (before?.cursor ?? 0)
        assert(
          may_lack ? follows > 0 : follows === 1,
          `fact ${fact.cursor} after ${before?.cursor}`,
        )
        assert(before === undefined || fact.at > before.at, "time does not advance in the journal")
        checkFact(fact)
        facts.push(fact)
        by_cursor.set(fact.cursor, fact)
      }
    },
    /** The stored blobs after all facts. Throws if a fact contradicts an earlier one. */
    stored: (isSuspect: (id: BlobId) => boolean): ReadonlySet<BlobId> => {
      const ids = new Set<BlobId>()
      for (const { kind, id, cursor } of facts) {
        if (isSuspect(id)) continue
        assert.equal(ids.has(id), kind !== "stored", `fact ${cursor}, ${kind}, cannot be`)
        if (kind === "stored") ids.add(id)
        else ids.delete(id)
      }
      return ids
    },
  }
}

/** A time ahead of all other clocks, in Unix nanoseconds. */
const ahead_ns = 2n ** 62n

export const makeModel = () => {
  let ahead = ahead_ns
  const entries = new Map(contents.map((content) => [content.id, makeEntry(content)]))
  return {
    entries: (): ReadonlyArray<Entry> => [...entries.values()],
    entry: (id: BlobId): Entry => {
      const entry = entries.get(contentById(id).id)
      if (entry) return entry
      throw new Error(`there is no entry of ${id}`)
    },
    recorded: makeRecorded(),
    /** Another node's time, later than any before. */
    elsewhere: () => {
      ahead += 1n
      return ahead
    },
    hasSuspects: () => [...entries.values()].some((entry) => entry.isSuspect()),
    end: () => {
      for (const entry of entries.values()) entry.end()
    },
  }
}

export type Model = ReturnType<typeof makeModel>
