/**
 * Reads the embedded trusts in a process that does not hold the data folder's lock: reloads the
 * file when it has changed, and never writes it.
 */
import { stat } from "node:fs/promises"
import { Effect, Layer, Semaphore } from "effect"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import {
  readTrustStore,
  type TrustStore,
  trustFile,
} from "#adapters/share-protection/trust-store.ts"
import { type Inspect, inspector, trustsOf } from "#adapters/share-protection/trusts-embedded.ts"
import { IdentityUnavailable } from "#gateway/identity.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"

/** Returns the current trusts. */
export type ReadTrusts = Effect.Effect<TrustStore, IdentityUnavailable>

/** Reads `identity/trusts.json`, which another process creates and maintains. */
export const trustReader = Effect.fnUntraced(function* (data_dir: string) {
  const path = trustFile(data_dir)
  const one_at_a_time = yield* Semaphore.make(1)
  let loaded: { readonly version: string; readonly store: TrustStore } | undefined
  const read: ReadTrusts = Effect.gen(function* () {
    // The file is replaced rather than modified, so a new version has another inode number.
    const { ino, mtimeMs, size } = yield* Effect.tryPromise({
      try: () => stat(path),
      catch: (cause) => new IdentityUnavailable({ message: `cannot read ${path}: ${cause}` }),
    })
    const version = `${ino} ${mtimeMs} ${size}`
    if (loaded?.version !== version) loaded = { version, store: yield* readTrustStore(data_dir) }
    return loaded.store
  }).pipe(one_at_a_time.withPermit)
  yield* read
  return read
})

const backend = ({ message }: IdentityUnavailable) => new BackendUnavailable({ detail: message })

/** Trusts that are redeemed in this process. */
export const trustsFromReader = (read: ReadTrusts) => {
  const now = Effect.map(Effect.mapError(read, backend), trustsOf)
  return Layer.succeed(Trusts, {
    verify: (trust_id, by) => Effect.flatMap(now, ({ verify }) => verify(trust_id, by)),
    redeem: (trust_id) => Effect.flatMap(now, ({ redeem }) => redeem(trust_id)),
    service: Effect.flatMap(now, ({ service }) => service),
  })
}

/** Like `inspector`, with the current trusts on each call. */
export const inspectorFromReader =
  (read: ReadTrusts): Inspect =>
  (delegation) =>
    Effect.flatMap(Effect.mapError(read, backend), (store) => inspector(store)(delegation))
