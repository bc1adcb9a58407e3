/**
 * The scrub: reads and verifies all live data, file by file, so that a corrupt copy is found while
 * another one exists. It remembers when each file was last verified.
 */

import type { Segment, VolumeParts } from "../parts.ts"
import type { CompactionParts } from "./compaction.ts"
import { verifyExtentFile } from "./extent-mover.ts"
import { verifyLog } from "./log-mover.ts"
import type { Pace } from "./pace.ts"

export interface ScrubParts extends CompactionParts, Pick<VolumeParts, "notes"> {}

/** Minimum time between verifications of a file, in milliseconds: a day. */
const interval_ms = 24 * 60 * 60 * 1000
const note_prefix = "verified "

const noteOf = ({ kind, number, generation }: Segment) =>
  `${note_prefix}${kind} ${number} ${generation}`

const millis = (clock: () => bigint) => Number(clock() / 1_000_000n)

export const makeScrub = (parts: ScrubParts) => {
  const { notes, clock, segments, logFiles, extents } = parts

  /** Files with live data. */
  const files = (): ReadonlyArray<Segment> => [
    ...logFiles().flatMap(({ live_bytes, segment }) => (live_bytes > 0 ? [segment] : [])),
    ...extents.files().flatMap(({ live_bytes, segment }) => (live_bytes > 0 ? [segment] : [])),
  ]
  /**
   * When a file was last verified, or first seen, in Unix milliseconds. The contents at the first
   * sight were written since the previous check.
   */
  const verifiedAt = (segment: Segment): number => {
    const key = noteOf(segment)
    const noted = notes[key]
    if (noted !== undefined) return Number(noted)
    const now = millis(clock)
    notes[key] = String(now)
    return now
  }
  const dropStaleNotes = () => {
    const used = new Set([...segments.all("log"), ...segments.all("ext")].map(noteOf))
    for (const key of Object.keys(notes)) {
      if (key.startsWith(note_prefix) && !used.has(key)) delete notes[key]
    }
  }
  const verifyFile = async (segment: Segment, pace: Pace) => {
    if (segment.kind === "ext") return verifyExtentFile(parts, segment.number, pace)
    const file = logFiles().find((one) => one.segment === segment)
    if (file) await verifyLog(parts, file, pace)
  }
  const verify = async (segment: Segment, pace: Pace) => {
    const at = millis(clock)
    const { kind, number } = segment
    try {
      await verifyFile(segment, pace)
    } catch (cause) {
      // A file that compaction retired in the meantime needs no verification.
      if (segments.find(kind, number) === segment) throw cause
    }
    if (segments.find(kind, number) === segment) notes[noteOf(segment)] = String(at)
    dropStaleNotes()
  }
  const oldestFirst = () =>
    files()
      .map((segment) => ({ segment, at: verifiedAt(segment) }))
      .sort((one, other) => one.at - other.at)
  return {
    /** Verifies everything once. */
    all: async (pace: Pace) => {
      for (const { segment } of oldestFirst()) await verify(segment, pace)
    },
    /** Verifies the file that waits longest, if that is a day or more. Returns whether it did. */
    next: async (pace: Pace): Promise<boolean> => {
      const [oldest] = oldestFirst()
      if (!oldest || millis(clock) - oldest.at < interval_ms) return false
      await verify(oldest.segment, pace)
      return true
    },
    /**
     * When the least recently verified file was last verified, in Unix milliseconds. Undefined:
     * nothing is live.
     */
    oldestUnverifiedAt: () => oldestFirst()[0]?.at,
  }
}
