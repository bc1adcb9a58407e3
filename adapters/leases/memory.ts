/** Leases in memory: for tests and single-process deployments. */
import { Clock, Effect, Layer } from "effect"
import { Leases } from "#actors/leases.ts"
import { type LeaseOptions, LeaseUnknown, leases } from "#adapters/leases/holder.ts"

/** State shared by several holders. */
export interface LeaseTable {
  /** By name: holder, version and expiry in monotonic milliseconds. */
  readonly leases: Map<string, { holder: string; life: object; token: number; until: number }>
  /** Holders that cannot reach the table, to simulate a network partition. */
  readonly unreachable: Set<string>
  /** Number of changes so far. */
  changes: number
}

/** An empty table. */
export const leaseTable = (): LeaseTable => ({
  leases: new Map(),
  unreachable: new Set(),
  changes: 0,
})

/** One holder's leases in a table. */
export const leasesMemory = (options: LeaseOptions, table: LeaseTable = leaseTable()) =>
  Layer.sync(Leases, () => {
    const { holder, ttl_ms } = options
    const life = {}

    const access = <A>(run: (time: number) => A) =>
      Effect.flatMap(Clock.monotonicTimeNanos, (nanos) =>
        table.unreachable.has(holder)
          ? Effect.fail(new LeaseUnknown({ detail: `${holder} is disconnected.` }))
          : Effect.sync(() => run(Number(nanos) / 1_000_000)),
      )

    const set = (name: string, time: number) => {
      const token = ++table.changes
      table.leases.set(name, { holder, life, token, until: time + ttl_ms })
      return token
    }

    const isOurs = (name: string, token: number, time: number) => {
      const lease = table.leases.get(name)
      return lease !== undefined && lease.token === token && lease.until > time
    }

    return leases(options, {
      take: (name, takeover) =>
        access((time) => {
          const lease = table.leases.get(name)
          const is_free = !lease || lease.until <= time
          const is_ours = lease?.life === life || (takeover && lease?.holder === holder)
          return is_free || is_ours ? set(name, time) : undefined
        }),
      renew: (name, token) =>
        access((time) => (isOurs(name, token, time) ? set(name, time) : undefined)),
      holderOf: (name) =>
        access((time) => {
          const lease = table.leases.get(name)
          return lease !== undefined && lease.until > time ? lease.holder : undefined
        }),
      release: (name, token) =>
        access((time) => {
          if (isOurs(name, token, time)) table.leases.delete(name)
        }),
    })
  })
