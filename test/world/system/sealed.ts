/** An in-memory log that is sealed as it grows, with a key to sign its heads. */
import { generateKeyPairSync } from "node:crypto"
import { Effect, Layer } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { LogStanding } from "#actors/system/log-standing.ts"
import { Notary } from "#actors/system/notary.ts"
import { notaryWith } from "#adapters/system/notary.ts"
import { logMemory } from "#journal"
import { Count, Counter } from "../counter.ts"

export const hour = (n: number) => new Date(Date.UTC(2026, 10, 20, n)).toISOString()

/** A new key for the test. */
export const newKey = () => notaryWith(generateKeyPairSync("ed25519").privateKey)

/** A log at half its limit. */
const half = Layer.succeed(LogStanding, {
  figures: Effect.succeed({
    generation: 1,
    position: 9,
    aggregates: 2,
    bytes: 50,
    limit_bytes: 100,
    used_share: 0.5,
  }),
})

/** An empty log, and a host of commands over it. */
export const emptyLog = Layer.mergeAll(
  Layer.provideMerge(host, logMemory),
  Layer.sync(Notary, newKey),
  half,
)

/** Increments a counter at an hour of the day. */
export const count = Effect.fnUntraced(function* (id: string, by: number, at = hour(by % 24)) {
  const commands = yield* Commands
  const origin = { command_id: `${id}-${by}`, actor: "test", at }
  return yield* commands.send(origin, address(Counter, id, Count.make({ by })))
})

/** Gives all followers of the log time to process it. */
export const settled = Effect.gen(function* () {
  for (let i = 0; i < 200; i++) yield* Effect.yieldNow
})

/** 40 commits of two counters with a checkpoint after about every ten; the last are not sealed. */
export const sealedStory = Effect.gen(function* () {
  yield* Effect.forkScoped(runProcess(checkpointer({ commits: 10, seconds: 1e6 })))
  for (let i = 1; i <= 40; i++) {
    yield* count(i % 3 === 0 ? "a" : "b", i)
    yield* settled
  }
})
