/** Temporary files that a killed process left behind; they may contain secrets. */
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

/** Name of a temporary file before its atomic rename, as used by `writePrivate` and others. */
const is_partial = /\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/

/** Folders with such files; in blobs and shares the names are chosen by users. */
const folders = ["", "run", "identity", "vault", join("vault", "secrets"), "images"]

/** Removes them; requires exclusive access to the data folder. Throws file system errors. */
export const removePartials = (data_dir: string) => {
  for (const folder of folders.map((name) => join(data_dir, name))) {
    for (const name of namesIn(folder)) {
      if (is_partial.test(name)) rmSync(join(folder, name), { force: true })
    }
  }
}

const namesIn = (folder: string) => {
  try {
    return readdirSync(folder)
  } catch {
    // Missing or not readable: it has no files of ours.
    return []
  }
}
