/** Secrets that can be told from anything else, wherever they turn up. */
import { randomBytes } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Every mark of a test begins so. */
const mark_head = `mark${randomBytes(6).toString("hex")}`

/** A secret of more than 32 characters, as some must be. */
export const mark = (name: string) => `${mark_head}.${name}.${randomBytes(16).toString("hex")}`

/** Also what a mark becomes where it is encoded. */
const forms = [
  mark_head,
  ...[0, 1, 2].map((shift) =>
    // Base64 is of three bytes at a time: what does not depend on what is around it.
    Buffer.from("\0".repeat(shift) + mark_head)
      .toString("base64")
      .slice(shift === 0 ? 0 : 4, -4),
  ),
]

export const isMarked = (text: string | Buffer) => forms.some((form) => text.includes(form))

/** The lines that have a mark, for the message of a failure. */
export const markedLines = (text: string) => text.split("\n").filter(isMarked)

/** Files below a folder that have a mark. */
export const markedFiles = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => isMarked(readFileSync(path)))
