/**
 * An entry of the log as a line of JSON that can be checked without this program: exports and
 * archives have one for each. The text between `"commit":` and the closing brace of a line is the
 * very text whose SHA-256 is `hash`.
 */
import { Schema } from "effect"
import { type Entry, isReadable, type Recorded, type Unreadable } from "#events/log.ts"

/** The text of a line between a commit's place and its text. */
export const commit_mark = ',"commit":'

/** A commit's line up to its text, which a brace follows. */
export const lineHead = ({ position, stream, hash, commit }: Recorded) => {
  const place = JSON.stringify({ position, stream, hash, prev: commit.prev })
  return place.slice(0, -1) + commit_mark
}

/** A commit's text as it is stored. */
export const textOf = ({ commit, bytes }: Recorded) =>
  bytes === undefined ? JSON.stringify(commit) : new TextDecoder().decode(bytes)

export const base64Of = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** The line of an entry that cannot be read: the reason instead of a commit, and its bytes. */
export const unreadableLine = ({ position, stream, hash, unreadable, bytes }: Unreadable) =>
  `${JSON.stringify({ position, stream, hash, unreadable, bytes: base64Of(bytes) })}\n`

/** An entry as a line. */
export const lineOf = (entry: Entry) =>
  isReadable(entry) ? `${lineHead(entry)}${textOf(entry)}}\n` : unreadableLine(entry)
