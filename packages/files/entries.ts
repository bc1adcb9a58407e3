/** Lists folders with names as bytes: decoding would make names that are not UTF-8 useless. */
import { opendir } from "node:fs/promises"

const slash = Buffer.from("/")

export const inside = (folder: Buffer, name: Buffer) => Buffer.concat([folder, slash, name])

export interface FolderEntry {
  readonly name: Buffer
  readonly is_folder: boolean
  readonly is_file: boolean
}

/** Yields nothing for a folder that no longer exists. Other errors are the system's. */
export async function* entriesOf(path: Buffer): AsyncGenerator<FolderEntry> {
  try {
    // This encoding maps each byte to a character and back.
    for await (const entry of await opendir(path, { encoding: "latin1" })) {
      const name = Buffer.from(entry.name, "latin1")
      yield { name, is_folder: entry.isDirectory(), is_file: entry.isFile() }
    }
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return
    throw error
  }
}
