/**
 * An entry of the log as a line of JSON that can be verified without this program: exports and
 * archives have one per entry. The text between `"commit":` and the closing brace of a line is
 * exactly the text whose SHA-256 is `hash`.
 */
import { Schema } from "effect"
import { type Entry, isReadable, type Recorded, type Unreadable } from "#events/log.ts"

/** The text between a commit's position and its text in a line. */
export const commit_mark = ',"commit":'

/** A commit's line up to its text; a brace follows the text. */
export const lineHead = ({ position, stream, hash, commit }: Recorded) => {
  const place = JSON.stringify({ position, stream, hash, prev: commit.prev })
  return place.slice(0, -1) + commit_mark
}

/** A commit's text as it is stored. */
export const textOf = ({ commit, bytes }: Recorded) =>
  bytes === undefined ? JSON.stringify(commit) : new TextDecoder().decode(bytes)

export const base64Of = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** The line of an unreadable entry: the reason instead of a commit, and its bytes. */
export const unreadableLine = ({ position, stream, hash, unreadable, bytes }: Unreadable) =>
  `${JSON.stringify({ position, stream, hash, unreadable, bytes: base64Of(bytes) })}\n`

/** An entry as a line. */
export const lineOf = (entry: Entry) =>
  isReadable(entry) ? `${lineHead(entry)}${textOf(entry)}}\n` : unreadableLine(entry)
