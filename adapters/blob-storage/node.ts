/** Provides this node's id if `[cluster]` does not configure one. */
import { join } from "node:path"
import { Effect, Option } from "effect"
import { v7 } from "uuid"
import { FileFailure, findBounded, writePrivate } from "#files"

/** Read limit; an id has at most 64 characters. */
const id_bytes_max = 128

/** The configured id, or the one in `node-id` in the data folder, which the first start creates. */
export const nodeId = Effect.fnUntraced(function* (configured: string, data_dir: string) {
  if (configured !== "") return configured
  const path = join(data_dir, "node-id")
  const stored = yield* findBounded(path, id_bytes_max)
  if (Option.isNone(stored)) {
    const new_id = v7()
    yield* writePrivate(path, `${new_id}\n`)
    return new_id
  }
  const id = stored.value.trim()
  if (/^[\w-]{1,64}$/.test(id)) return id
  return yield* new FileFailure({ message: `${path} does not contain a node id`, code: "DAMAGED" })
})
