/** Folders that are made where an operator says. */
import { existsSync, mkdirSync } from "node:fs"
import { dirname, resolve } from "node:path"

/**
 * Makes a folder and those around it that are missing, with this mode; one that is there stays as
 * it is. Throws as the file system does, also where Node's own `recursive` never answers: it tries
 * for ever where a file system, as /proc, says ENOENT though the folder around is there.
 */
export const makeFolder = (path: string, mode: number) => {
  const whole = resolve(path)
  if (!existsSync(whole)) makeOne(outermostMissing(whole), mode)
  mkdirSync(whole, { recursive: true, mode })
}

const outermostMissing = (path: string): string =>
  existsSync(dirname(path)) ? path : outermostMissing(dirname(path))

const makeOne = (path: string, mode: number) => {
  try {
    mkdirSync(path, mode)
  } catch (cause) {
    // Somebody else may have made it just now; a link that leads nowhere is still in the way.
    if (!existsSync(path)) throw cause
  }
}
