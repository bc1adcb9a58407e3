import { describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { spoolMemory } from "#adapters/spool/memory.ts"
import type { SearchFact } from "#schemas/carrier-search/search.ts"
import { promises } from "../../contract/spool.ts"

describe("a spool in memory", () => {
  for (const [sentence, promise] of Object.entries(promises)) {
    it.effect(sentence, () =>
      Effect.flatMap(spoolMemory<SearchFact>(), promise).pipe(Effect.provide(Logger.layer([]))),
    )
  }
})
