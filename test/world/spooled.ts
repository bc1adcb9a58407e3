/** Facts for tests of spools, distinguished by a number. */
import { Effect } from "effect"
import type { SearchFact } from "#schemas/carrier-search/search.ts"
import type { PredictionFact } from "#schemas/plant-disease/prediction.ts"

const origin = (n: number) => ({
  at: new Date(Date.UTC(2026, 10, 20, 12, 0, 0, n)).toISOString(),
  actor: "somebody",
  request_id: `request-${n}`,
  correlation_id: `chain-${n}`,
})

export const searchFact = (n: number): SearchFact => ({
  ...origin(n),
  start: n,
  end: n + 99,
  registry: "fmcsa",
  outcome: "answered",
  found: 3,
  answered: 100,
  reason: null,
  duration_ms: 12,
})

export const predictionFact = (n: number): PredictionFact => ({
  ...origin(n),
  class: "Demo___Rust",
  probability: 0.75,
  image_sha256: hex(n),
  image_bytes: 1000 + n,
  model_sha256: "0".repeat(64),
  milliseconds: 12.5,
})

const hex = (n: number) => n.toString(16).padStart(64, "0")

const poll_ms = 5
const polls_max = 2_000

/** Polls every 5 ms until the condition holds, for 10 s at most. */
export const until = <E, R>(holds: Effect.Effect<boolean, E, R>) =>
  Effect.flatMap(holds, (held) => (held ? Effect.void : Effect.fail("not yet" as const))).pipe(
    Effect.delay(poll_ms),
    Effect.retry({ times: polls_max, while: (error) => error === "not yet" }),
    Effect.orDie,
  )
