/** The project's cache: downloaded programs, a fallback for npm's cache, compiled code. */
import { accessSync, constants } from "node:fs"
import { homedir } from "node:os"
import { dirname, isAbsolute, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The root of the checkout, regardless of the working directory. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Whether this folder is writable, or can be created if it does not exist. */
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
 * The cache folder: ALMANAC_CACHE_DIR, else XDG_CACHE_HOME/almanac, else ~/.cache/almanac, or
 * .cache in the checkout if the home folder is not writable. A relative XDG path is ignored, as its
 * specification requires.
 */
export const cacheDirectory = (environment = process.env) => {
  if (environment.ALMANAC_CACHE_DIR) return environment.ALMANAC_CACHE_DIR
  const shared = environment.XDG_CACHE_HOME ?? ""
  const home = isAbsolute(shared) ? shared : join(environment.HOME || homedir(), ".cache")
  const folder = join(home, "almanac")
  return isAbsolute(folder) && isWritable(folder) ? folder : join(root, ".cache")
}

/** The folder of Node's compile cache. */
export const compileCache = () => join(cacheDirectory(), "compile")
