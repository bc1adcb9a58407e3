/**
 * The objects of an in-memory bucket, also stored in a folder, so that they outlive a killed
 * process.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { MemoryBucket } from "../../world/share-protection/memory/buckets.ts"

type Objects = MemoryBucket["objects"]
type StoredObject = NonNullable<ReturnType<Objects["get"]>>

/** Suffix of a file that is still being written; no object has such a name. */
const part = ".part"

class FolderObjects extends Map<string, StoredObject> {
  readonly #folder: string

  constructor(folder: string) {
    super()
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
    for (const name of readdirSync(folder)) {
      if (name.endsWith(part)) continue
      const bytes = readFileSync(join(folder, name))
      super.set(decodeURIComponent(name), { bytes, locked_until: undefined })
    }
  }

  #pathOf(key: string) {
    return join(this.#folder, encodeURIComponent(key))
  }

  override set(key: string, object: StoredObject) {
    const path = this.#pathOf(key)
    writeFileSync(`${path}${part}`, object.bytes)
    renameSync(`${path}${part}`, path)
    return super.set(key, object)
  }

  override delete(key: string) {
    rmSync(this.#pathOf(key), { force: true })
    return super.delete(key)
  }
}

/**
 * The objects in a folder. Marks the locks of engines that were killed with their process as dead.
 */
export const objectsIn = (folder: string): Objects => {
  const objects = new FolderObjects(folder)
  for (const [key, { bytes }] of objects) {
    if (!key.startsWith("locks/")) continue
    const lock = { ...JSON.parse(Buffer.from(bytes).toString()), is_dead: true }
    objects.set(key, { bytes: Buffer.from(JSON.stringify(lock)), locked_until: undefined })
  }
  return objects
}
