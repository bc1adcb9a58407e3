import { describe } from "@effect/vitest"
import { Layer } from "effect"
import { publishedEventsMemory } from "#adapters/published/memory.ts"
import { publishedEventsContract } from "../../contract/published-events.ts"

describe("published events in memory", () => {
  publishedEventsContract(() => Layer.fresh(publishedEventsMemory))
})
