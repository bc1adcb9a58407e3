/** Files that hold what others must not read, and those that may be missing. */
import { open } from "node:fs/promises"
import { failure } from "#cli/client/failure.ts"

/** Longest file of profiles, credentials or a token, in bytes. */
const file_bytes_max = 2 ** 20

const others = 0o077

export interface TextFile {
  readonly text: string
  /** Whether somebody else than its owner may read or write it. */
  readonly is_open: boolean
}

const isMissing = (cause: unknown) =>
  cause instanceof Error && "code" in cause && /^(ENOENT|ENOTDIR)$/.test(String(cause.code))

/** The file at `path`; undefined where there is none. ClientFailed where it cannot be read. */
export const findText = async (path: string): Promise<TextFile | undefined> => {
  try {
    // One open file is looked at and read, so that nobody exchanges it in between.
    await using file = await open(path, "r")
    const { mode, size } = await file.stat()
    if (size > file_bytes_max) throw new Error(`longer than ${file_bytes_max} bytes`)
    return { text: await file.readFile("utf8"), is_open: (mode & others) !== 0 }
  } catch (cause) {
    if (isMissing(cause)) return undefined
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw failure("usage", `${path} cannot be read: ${reason}`)
  }
}

/** The token in the file at `path`, which nobody else may read. */
export const readToken = async (path: string) => {
  const found = await findText(path)
  if (found === undefined) throw failure("usage", `${path}: there is no such file`)
  if (found.is_open) throw tooOpen(path)
  return found.text.trim()
}

/** The refusal of a file with secrets that others can read. */
export const tooOpen = (path: string) =>
  failure("usage", `${path} holds secrets, and others may read it`, `chmod 600 ${path}`)
