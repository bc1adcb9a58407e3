/** Secrets that are recognizable wherever they appear. */
import { randomBytes } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The prefix of every mark of a test. */
const mark_head = `mark${randomBytes(6).toString("hex")}`

/** A secret of more than 32 characters, which some settings require. */
export const mark = (name: string) => `${mark_head}.${name}.${randomBytes(16).toString("hex")}`

/** A mark's encoded forms too. */
const forms = [
  mark_head,
  ...[0, 1, 2].map((shift) =>
    // Base64 encodes three bytes at a time: keep the part that does not depend on the context.
    Buffer.from("\0".repeat(shift) + mark_head)
      .toString("base64")
      .slice(shift === 0 ? 0 : 4, -4),
  ),
]

export const isMarked = (text: string | Buffer) => forms.some((form) => text.includes(form))

/** The lines that contain a mark, for a failure's message. */
export const markedLines = (text: string) => text.split("\n").filter(isMarked)

/** Files below a folder that contain a mark. */
export const markedFiles = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => isMarked(readFileSync(path)))
