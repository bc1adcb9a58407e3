/**
 * Images of local workers. An image is a JSON manifest that describes the agents started from it:
 * its name, whether it may be used for workers, and the engine's version.
 *
 * Source: DECISIONS, document 2, workers.
 */
import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { Image } from "#actors/share-protection/ports/compute.ts"
import { findBounded, writePrivate } from "#files"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { Name } from "#schemas/share-protection/text.ts"

/** The image that the first start creates. */
export const default_image = "almanac-agent"

/** A manifest has three lines. */
const manifest_bytes_max = 4096
const manifests_max = 1000

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    name: Name,
    svc_worker_image: Schema.optionalKey(Schema.Boolean),
    engine_version: Schema.optionalKey(Schema.NullOr(Name)),
  }),
)

const pathOf = (dir: string, name: string) => join(dir, `${name}.json`)

/** Creates the default image, or updates it to this version of the engine. */
export const ensureDefaultImage = Effect.fnUntraced(function* (
  dir: string,
  engine_version: string,
) {
  const name = default_image
  const text = Schema.encodeSync(Manifest)({ name, svc_worker_image: true, engine_version })
  const path = pathOf(dir, name)
  const found = yield* findBounded(path, manifest_bytes_max)
  if (Option.getOrUndefined(found) !== text) yield* writePrivate(path, text)
})

const unreadable = (detail: string) => new BackendUnavailable({ detail: `Images: ${detail}.` })

/** The newest image of that name in the folder; files that are not manifests are ignored. */
export const findImage = Effect.fnUntraced(function* (dir: string, name: string) {
  const paths = yield* Effect.tryPromise({
    try: () => listManifests(dir),
    catch: (cause) => unreadable(String(cause)),
  })
  let newest: { readonly image: Image; readonly modified_ms: number } | undefined
  for (const { path, modified_ms } of paths) {
    // A file that is too large or was just removed is not an image.
    const text = Effect.orElseSucceed(findBounded(path, manifest_bytes_max), () => Option.none())
    const manifest = Option.flatMap(yield* text, Schema.decodeOption(Manifest))
    if (Option.isNone(manifest) || manifest.value.name !== name) continue
    if (newest !== undefined && newest.modified_ms >= modified_ms) continue
    const { svc_worker_image = false, engine_version = null } = manifest.value
    newest = { image: { name, properties: { svc_worker_image, engine_version } }, modified_ms }
  }
  return newest?.image
})

const listManifests = async (dir: string) => {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return []
    throw error
  })
  const paths = names.filter((name) => name.endsWith(".json")).map((name) => join(dir, name))
  return Promise.all(
    paths
      .slice(0, manifests_max)
      .map(async (path) => ({ path, modified_ms: (await stat(path)).mtimeMs })),
  )
}
