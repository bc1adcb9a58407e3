/**
 * The last facts of the journal, in memory: who takes them to the log asks for them a moment after
 * they were written, and need not read them from the disk again.
 */
import type { BlobFact } from "#actors/blob-storage/blobs/engine.ts"
import type { NewRecord } from "./record.ts"
import { factOfNew } from "./record-facts.ts"

/** Facts that are kept at least, where their labels are few: a second of puts under full load. */
const facts_max = 4096
/** Characters of their labels, and of their extents, before older ones are forgotten. */
const characters_max = 1024 * 1024
/** A record keeps its extents in memory too: each as much as so many characters. */
const characters_of_extent = 64

const charactersOf = ({ labels, extents, freed }: NewRecord) => {
  let characters = characters_of_extent * (extents.length + freed.length)
  for (const key in labels) characters += key.length + (labels[key]?.length ?? 0)
  return characters
}

export const makeRecentFacts = () => {
  let records: Array<NewRecord> = []
  let characters = 0

  const forgetHalf = () => {
    records = records.slice(records.length >>> 1)
    characters = records.reduce((sum, record) => sum + charactersOf(record), 0)
  }
  return {
    /** A record that is durable, in the order of the log. */
    note: (record: NewRecord) => {
      if (record.cursor === 0 || record.is_moved) return
      records.push(record)
      characters += charactersOf(record)
      if (records.length > 2 * facts_max || characters > characters_max) forgetHalf()
    },
    /** The facts after a cursor; undefined where older ones may be among them. */
    after: (cursor: number, limit: number): ReadonlyArray<BlobFact> | undefined => {
      const [first] = records
      if (first === undefined || first.cursor > cursor + 1) return undefined
      // Cursors rise, mostly by one: the place is at or before that of as many records.
      let at = Math.min(cursor + 1 - first.cursor, records.length)
      while (at > 0 && (records[at - 1]?.cursor ?? 0) > cursor) at -= 1
      return records.slice(at, at + limit).flatMap((record) => factOfNew(record) ?? [])
    },
  }
}
