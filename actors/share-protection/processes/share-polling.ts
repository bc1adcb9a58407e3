/** manila_polling: checks that the shares that policies protect exist. Document 2 §2. */
import { Effect, Stream } from "effect"
import { Policy, policyAfter } from "#actors/share-protection/policy.ts"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import type { Loop } from "#actors/share-protection/processes/reconciling.ts"
import { Log, parseStream } from "#events/log.ts"

export const sharePolling: Effect.Effect<Loop, never, Log | Shares> = Effect.gen(function* () {
  const log = yield* Log
  const shares = yield* Shares

  const protectedIds = Effect.gen(function* () {
    const ids: Array<string> = []
    yield* Stream.runForEach(log.lasts(Policy.name), (recorded) =>
      Effect.map(policyAfter(log, recorded), ({ policy }) => {
        if (policy !== null) ids.push(parseStream(recorded.stream).id)
      }),
    )
    return ids
  })

  return Effect.gen(function* () {
    const listed = yield* Effect.result(Stream.runCollect(shares.list))
    if (listed._tag === "Failure") {
      const { detail } = listed.failure
      return [{ kind: "backend_unavailable", subject: "shares", detail }]
    }
    const known = new Set<string>(listed.success.map(({ id }) => id))
    const gone = (yield* protectedIds).filter((id) => !known.has(id))
    return gone.map((id) => ({
      kind: "share_gone",
      subject: id,
      detail: "A policy protects a share that the share service no longer lists.",
    }))
  })
})
