import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { logMemory } from "#journal"
import { logContract } from "../../contract/log.ts"

describe("the log in memory", () => {
  logContract((name, body) => it.effect(name, () => Effect.provide(body, logMemory)))
})
