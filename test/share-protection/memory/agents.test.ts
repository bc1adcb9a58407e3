import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agents } from "#actors/share-protection/ports/agents.ts"
import { agentsContract } from "../../contract/share-protection/agents.ts"
import { agentsMemory } from "../../world/share-protection/memory/agents.ts"

describe("agents in memory", () => {
  agentsContract((name, body) =>
    it.live(name, () =>
      Effect.flatMap(Agents, (agents) => Effect.scoped(body(agents, agents))).pipe(
        Effect.provide(agentsMemory({ command_timeout_seconds: 0.1 })),
      ),
    ),
  )
})
