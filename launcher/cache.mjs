/** Where the project keeps what it fetched: programs, npm's cache of last resort, compiled code. */
import { accessSync, constants } from "node:fs"
import { homedir } from "node:os"
import { dirname, isAbsolute, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The checkout, whatever the working directory is. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Whether this folder can be written, or made where it does not exist yet. */
export const isWritable = (folder) => {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch (error) {
    const parent = dirname(folder)
    return error.code === "ENOENT" && parent !== folder && isWritable(parent)
  }
}

/**
 * The cache folder: ALMANAC_CACHE_DIR, else XDG_CACHE_HOME/almanac, else ~/.cache/almanac, and
 * .cache in the checkout where the home cannot be written. A relative XDG path does not count, as
 * its specification says.
 */
export const cacheDirectory = (environment = process.env) => {
  if (environment.ALMANAC_CACHE_DIR) return environment.ALMANAC_CACHE_DIR
  const shared = environment.XDG_CACHE_HOME ?? ""
  const home = isAbsolute(shared) ? shared : join(environment.HOME || homedir(), ".cache")
  const folder = join(home, "almanac")
  return isAbsolute(folder) && isWritable(folder) ? folder : join(root, ".cache")
}

/** Where Node keeps compiled code from one start to the next. */
export const compileCache = () => join(cacheDirectory(), "compile")
