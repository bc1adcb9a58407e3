/** The objects of a bucket in memory, kept in a folder as well: they outlive a killed process. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { MemoryBucket } from "../../world/share-protection/memory/buckets.ts"

type Objects = MemoryBucket["objects"]
type StoredObject = NonNullable<ReturnType<Objects["get"]>>

/** What is being written has a name that no object has. */
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

/** The objects in a folder. Locks of engines that were killed with their process are dead. */
export const objectsIn = (folder: string): Objects => {
  const objects = new FolderObjects(folder)
  for (const [key, { bytes }] of objects) {
    if (!key.startsWith("locks/")) continue
    const lock = { ...JSON.parse(Buffer.from(bytes).toString()), is_dead: true }
    objects.set(key, { bytes: Buffer.from(JSON.stringify(lock)), locked_until: undefined })
  }
  return objects
}
