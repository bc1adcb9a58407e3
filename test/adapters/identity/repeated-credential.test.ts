/** Credentials that a repeated request issues. Source: decision 0180. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { host } from "#actors/host.ts"
import { retryKey } from "#adapters/identity/repeated-credential.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { trustIssuer } from "#adapters/share-protection/trusts-embedded.ts"
import { openVault, secretKeeper } from "#adapters/share-protection/vault-embedded.ts"
import { issuedTokens } from "#adapters/system/issued-tokens.ts"
import type { IdentityUnavailable } from "#gateway/identity.ts"
import { logMemory } from "#journal"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { given } from "../../world/settings-given.ts"

const at = "2026-11-28T00:00:00.000Z"
const repeated = { command_id: "c1", actor: "operator", at, fingerprint: "f1" }
const changed = { ...repeated, fingerprint: "f2" }
const other = { ...repeated, command_id: "c2" }
/** Without a key, each request has its own id and no fingerprint. */
const alone = { command_id: "c3", actor: "operator", at }

const grant = { scopes: ["blobs:read"], roles: [] } as const
const trust = { project_id: "p", roles: ["member"], ttl_seconds: 60 }
const secret = (payload: string) => ({ project_id: "p", payload: Redacted.make(payload) })

const isReused = (failing: Effect.Effect<unknown, IdentityUnavailable>) =>
  Effect.map(Effect.flip(failing), ({ is_reused }) => assert.isTrue(is_reused))

/** Runs the effect several times concurrently; returns the number of distinct results. */
const distinct = <E>(each: Effect.Effect<string, E>) =>
  Effect.map(
    Effect.all(
      Array.from({ length: 8 }, () => each),
      { concurrency: "unbounded" },
    ),
    (all) => new Set(all).size,
  )

describe("a repeated request", () => {
  it.live("gets one token, also after a restart, and no token with another body", () =>
    Effect.gen(function* () {
      const dir = yield* temporaryFolder
      const start = Effect.gen(function* () {
        const { issuer } = yield* issuedTokens(Infinity, yield* retryKey(settingsOf(dir)))
        return (origin: typeof alone, name = "n") =>
          Effect.map(issuer.issue({ ...grant, name }, origin), Redacted.value)
      })
      const issue = yield* start
      assert.equal(yield* distinct(issue(repeated)), 1)
      const again = yield* start
      assert.equal(yield* again(repeated), yield* issue(repeated))
      yield* isReused(again(changed, "m"))
      const different = [issue(repeated), issue(other), issue(alone), issue(alone)]
      assert.equal(new Set(yield* Effect.all(different)).size, 4)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory)))),
  )

  it.live("makes one trust, over a restart too; with another body none", () =>
    Effect.gen(function* () {
      const dir = yield* temporaryFolder
      const { issue } = trustIssuer(yield* openTrustStore(dir))
      assert.equal(yield* distinct(issue(trust, repeated)), 1)
      const again = trustIssuer(yield* openTrustStore(dir))
      assert.equal(yield* again.issue(trust, repeated), yield* issue(trust, repeated))
      yield* isReused(again.issue({ ...trust, roles: ["reader"] }, changed))
      assert.notEqual(yield* issue(trust, other), yield* issue(trust, repeated))
      assert.notEqual(yield* issue(trust, alone), yield* issue(trust, alone))
    }).pipe(Effect.scoped),
  )

  it.live("keeps one secret, over a restart too; with another body none", () =>
    Effect.gen(function* () {
      const dir = yield* temporaryFolder
      const { put } = secretKeeper(yield* openVault(dir))
      assert.equal(yield* distinct(put(secret("s"), repeated)), 1)
      const again = secretKeeper(yield* openVault(dir))
      assert.equal(yield* again.put(secret("s"), repeated), yield* put(secret("s"), repeated))
      yield* isReused(again.put(secret("t"), changed))
      assert.notEqual(yield* put(secret("s"), other), yield* put(secret("s"), repeated))
      assert.notEqual(yield* put(secret("s"), alone), yield* put(secret("s"), alone))
    }).pipe(Effect.scoped),
  )
})

const settingsOf = (dir: string) => given({ data: { dir } })
