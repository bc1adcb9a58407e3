import { describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Leases } from "#actors/leases.ts"
import { leasesMemory, leaseTable } from "#adapters/leases/memory.ts"
import { leasesContract, type Place } from "../../contract/leases.ts"

const ttl_ms = 500

const place = (): Place => {
  const table = leaseTable()
  return {
    ttl_ms,
    holder: Effect.fnUntraced(function* (holder) {
      const context = yield* Layer.build(leasesMemory({ holder, ttl_ms }, table))
      return {
        leases: yield* Effect.provide(Leases, context),
        cutOff: () => table.unreachable.add(holder),
        comeBack: () => table.unreachable.delete(holder),
      }
    }),
  }
}

describe("leases in memory", () => {
  leasesContract((name, body) =>
    it.live(name, () => Effect.scoped(Effect.suspend(() => body(place())))),
  )
})
