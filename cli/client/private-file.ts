/** Reads files that may be missing or that hold secrets. */
import { open } from "node:fs/promises"
import { failure } from "#cli/client/failure.ts"

/** Maximum size of a file of profiles, credentials or a token, in bytes. */
const file_bytes_max = 2 ** 20

const others_mode = 0o077

export interface TextFile {
  readonly text: string
  /** Whether users other than its owner may read or write it. */
  readonly is_exposed: boolean
}

/** Whether a file or a folder in its path does not exist. */
export const isMissing = (cause: unknown) =>
  cause instanceof Error && "code" in cause && /^(ENOENT|ENOTDIR)$/.test(String(cause.code))

/** The file at `path`; undefined if it does not exist. ClientFailed if it cannot be read. */
export const findText = async (path: string): Promise<TextFile | undefined> => {
  try {
    // Checked and read through one handle, so that it cannot be replaced in between.
    await using file = await open(path, "r")
    const { mode, size } = await file.stat()
    if (size > file_bytes_max) throw new Error(`longer than ${file_bytes_max} bytes`)
    return { text: await file.readFile("utf8"), is_exposed: (mode & others_mode) !== 0 }
  } catch (cause) {
    if (isMissing(cause)) return undefined
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw failure("usage", `${path} cannot be read: ${reason}`)
  }
}

/** The token in the file at `path`. ClientFailed if other users can read it. */
export const readToken = async (path: string) => {
  const found = await findText(path)
  if (found === undefined) throw failure("usage", `${path} does not exist`)
  if (found.is_exposed) throw tooPermissive(path)
  return found.text.trim()
}

/** The failure for a file with secrets that other users can read. */
export const tooPermissive = (path: string) =>
  failure("usage", `${path} holds a secret, but other users can read it`, `chmod 600 ${path}`)
