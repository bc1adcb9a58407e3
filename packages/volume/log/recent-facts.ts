/**
 * The most recent facts of the journal, in memory: they are usually read right after they were
 * written, and then need no read from disk.
 */
import type { BlobFact } from "#actors/blob-storage/ports/engine.ts"
import type { NewRecord } from "./record.ts"
import { factOfNew } from "./record-facts.ts"

/** Minimum number of facts kept, if their labels are small: a second of puts under full load. */
const facts_max = 4096
/** Maximum size of their labels and extents, in characters. Above it, older facts are dropped. */
const characters_max = 1024 * 1024
/** Size of an extent, which a record keeps in memory too, in characters. */
const characters_of_extent = 64

const charactersOf = ({ labels, extents, freed }: NewRecord) => {
  let characters = characters_of_extent * (extents.length + freed.length)
  for (const key in labels) characters += key.length + (labels[key]?.length ?? 0)
  return characters
}

export const makeRecentFacts = () => {
  let records: Array<NewRecord> = []
  let characters = 0

  const dropHalf = () => {
    records = records.slice(records.length >>> 1)
    characters = records.reduce((sum, record) => sum + charactersOf(record), 0)
  }
  return {
    /** Adds a durable record, in log order. */
    note: (record: NewRecord) => {
      if (record.cursor === 0 || record.is_moved) return
      records.push(record)
      characters += charactersOf(record)
      if (records.length > 2 * facts_max || characters > characters_max) dropHalf()
    },
    /** The facts after a cursor. Undefined if some of them may have been dropped. */
    after: (cursor: number, limit: number): ReadonlyArray<BlobFact> | undefined => {
      const [first] = records
      if (first === undefined || first.cursor > cursor + 1) return undefined
      // Cursors rise, mostly by one, so the first fact is at or before this index.
      let at = Math.min(cursor + 1 - first.cursor, records.length)
      while (at > 0 && (records[at - 1]?.cursor ?? 0) > cursor) at -= 1
      return records.slice(at, at + limit).flatMap((record) => factOfNew(record) ?? [])
    },
  }
}
