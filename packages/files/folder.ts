/** Creates folders where the operator configures them. */
import { existsSync, mkdirSync } from "node:fs"
import { dirname, resolve } from "node:path"

/**
 * Creates a folder with its missing parents, all with this mode. An existing folder stays as it is.
 * Throws the file system's errors, also where Node's own `recursive` loops forever because the file
 * system, such as /proc, reports ENOENT although the parent exists.
 */
export const makeFolder = (path: string, mode: number) => {
  const absolute = resolve(path)
  if (!existsSync(absolute)) makeOne(outermostMissing(absolute), mode)
  mkdirSync(absolute, { recursive: true, mode })
}

const outermostMissing = (path: string): string =>
  existsSync(dirname(path)) ? path : outermostMissing(dirname(path))

const makeOne = (path: string, mode: number) => {
  try {
    mkdirSync(path, mode)
  } catch (cause) {
    // Another process may have created it just now; a dangling link is still in the way.
    if (!existsSync(path)) throw cause
  }
}
