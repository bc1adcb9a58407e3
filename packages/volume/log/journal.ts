/** The journal: reads the facts of the log's records, in commit order. */
import type { BlobFact } from "#actors/blob-storage/ports/engine.ts"
import { data_start } from "./format.ts"
import { type LoggedRecord, readBatch, readHeader, salvage, searchHeader } from "./reader.ts"
import { factOf } from "./record-facts.ts"
import type { LogFileState, VolumeState } from "./state.ts"

/** Maximum bytes read at once from a span without a valid batch. */
const damaged_bytes_max = 16 * 1024 * 1024

interface Step {
  /** Undefined if the span holds no requested fact. */
  readonly records: ReadonlyArray<LoggedRecord> | undefined
  /** Position of the next step. */
  readonly next: number
  readonly sequence: number
}

/** Reads the records of the next batch, or of the damaged span before it. */
const stepAt = async (
  { segment, end }: LogFileState,
  position: number,
  after: { readonly sequence: number; readonly cursor: number },
): Promise<Step | undefined> => {
  if (position >= end) return undefined
  const header = await readHeader(segment, position)
  if (header) {
    const { sequence, first_cursor, records, bytes } = header
    const is_wanted = first_cursor + records - 1 > after.cursor
    const batch = is_wanted ? await readBatch(segment, header) : undefined
    return { records: batch?.records, next: position + bytes, sequence }
  }
  const found = await searchHeader(segment, position, after.sequence)
  const next = Math.min(found?.position ?? end, end, position + damaged_bytes_max)
  const { records } = await salvage(segment, position, next)
  return { records, next, sequence: after.sequence }
}

interface Place {
  /** Generation of the file: another file may get its number later. */
  readonly generation: number
  readonly position: number
  readonly sequence: number
  /** Upper bound of the cursors before this position in the file. */
  readonly cursor: number
}

/** Reads facts, recent ones from memory. A scan resumes quickly where the previous one ended. */
export const makeJournalScan = ({ files, counters, recent }: VolumeState) => {
  let ended: Place | undefined

  const filesAfter = (cursor: number) =>
    Array.from(files.values())
      .filter((file) => file.last_cursor > cursor)
      .sort((one, other) => one.first_cursor - other.first_cursor)

  const startIn = ({ segment }: LogFileState, cursor: number): Place => {
    const { generation } = segment
    if (ended?.generation === generation && ended.cursor <= cursor) return ended
    return { generation, position: data_start, sequence: 0, cursor: 0 }
  }
  /**
   * Takes a step. Also undefined if the file was retired, because all its facts are acknowledged.
   */
  const stepIn = async (file: LogFileState, place: Place, cursor: number) => {
    const isInUse = () => files.get(file.segment.number) === file
    if (!isInUse()) return undefined
    try {
      return await stepAt(file, place.position, { sequence: place.sequence, cursor })
    } catch (cause) {
      if (isInUse()) throw cause
      return undefined
    }
  }
  return async (after_cursor: number, limit: number): Promise<ReadonlyArray<BlobFact>> => {
    let cursor = Math.max(after_cursor, counters.acknowledged)
    const known = recent.after(cursor, limit)
    if (known !== undefined) return known
    const facts: Array<BlobFact> = []
    for (const file of filesAfter(cursor)) {
      let place = startIn(file, cursor)
      for (;;) {
        const step = await stepIn(file, place, cursor)
        if (!step) break
        for (const { head } of step.records ?? []) {
          const fact = factOf(head)
          if (!fact || fact.cursor <= cursor) continue
          if (facts.length >= limit) {
            ended = place
            return facts
          }
          facts.push(fact)
          cursor = fact.cursor
        }
        place = { ...place, position: step.next, sequence: step.sequence, cursor }
        ended = place
      }
    }
    return facts
  }
}
