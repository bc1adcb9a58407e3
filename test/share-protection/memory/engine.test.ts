import { describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Engine, type Repository } from "#actors/share-protection/ports/engine.ts"
import { engineContract } from "../../contract/share-protection/engine.ts"
import type { EnginePlace } from "../../contract/share-protection/engine-place.ts"
import {
  type MemoryBucket,
  makeBucket,
  type S3,
} from "../../world/share-protection/memory/buckets.ts"
import {
  engineMemory,
  makeRepository,
  noTroubles,
} from "../../world/share-protection/memory/engine.ts"

const make = () => {
  const s3: S3 = new Map()
  const troubles = noTroubles()
  const repository = (properties: Partial<MemoryBucket> = {}): Repository => ({
    ...makeBucket(s3, properties),
    password: Redacted.make("password-of-the-repository"),
  })
  const place: EnginePlace = {
    bucket: Effect.sync(() => repository()),
    old: Effect.suspend(() => {
      const made = repository()
      return Effect.as(makeRepository(s3, made, 1), made)
    }),
    slow: Effect.sync(() => repository({ write_ms: 20 })),
    kill: (repository, folder) =>
      Effect.gen(function* () {
        troubles.next.set("backup", { dies: true })
        const engine = yield* Engine
        yield* Effect.flip(engine.backup(repository, folder, () => Effect.void))
      }),
    hide: (path) => Effect.sync(() => troubles.unreadable.add(path)),
  }
  return { place, layer: engineMemory(s3, troubles) }
}

describe("the engine in memory", () => {
  engineContract((name, body) =>
    it.live(name, () =>
      Effect.suspend(() => {
        const { place, layer } = make()
        return Effect.scoped(body(place)).pipe(Effect.provide(Layer.fresh(layer)))
      }),
    ),
  )
})
