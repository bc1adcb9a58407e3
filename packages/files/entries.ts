/** What is in a folder, by names of bytes: decoded, one that is no UTF-8 would name nothing. */
import { opendir } from "node:fs/promises"

const slash = Buffer.from("/")

export const inside = (folder: Buffer, name: Buffer) => Buffer.concat([folder, slash, name])

export interface FolderEntry {
  readonly name: Buffer
  readonly is_folder: boolean
  readonly is_file: boolean
}

/** Nothing of a folder that is gone since it was listed; else it fails as the system does. */
export async function* entriesOf(path: Buffer): AsyncGenerator<FolderEntry> {
  try {
    // In this encoding each byte is a character, and each character that byte again.
    for await (const entry of await opendir(path, { encoding: "latin1" })) {
      const name = Buffer.from(entry.name, "latin1")
      yield { name, is_folder: entry.isDirectory(), is_file: entry.isFile() }
    }
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return
    throw error
  }
}
