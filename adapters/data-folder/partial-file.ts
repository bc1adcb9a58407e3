/** Files that a killed process began and never put in their place: secrets may be in them. */
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"

/** What is written beside a file before it takes its place, by `writePrivate` and others. */
const is_partial = /\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/

/** Where such files are in a data folder; in blobs and shares others choose the names. */
const folders = ["", "run", "identity", "vault", join("vault", "secrets"), "images"]

/** Removes them; nobody else may write in the data folder meanwhile. Throws as the file system. */
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
    // It is not made yet, or not ours to look into: then there is nothing of ours.
    return []
  }
}
