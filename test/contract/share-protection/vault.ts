/** Contract of every secrets manager. */
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Delegation } from "#actors/share-protection/ports/trusts.ts"
import { secret_denied, type Vault } from "#actors/share-protection/ports/vault.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

/** A secrets manager without secrets, and two projects. */
export interface VaultPlace {
  readonly vault: Vault["Service"]
  /** A token from a new trust of this project. */
  readonly delegation: (project: "one" | "other") => Effect.Effect<Delegation, unknown>
  /** A token for project `one` whose trust was revoked before its first use. */
  readonly revoked: Effect.Effect<Delegation, unknown>
  /** Stores a secret as the project's user, as text or as bytes. */
  readonly put: (
    project: "one" | "other",
    payload: Uint8Array,
    kind: "text" | "bytes",
  ) => Effect.Effect<string, unknown>
}

type Test = (name: string, body: (place: VaultPlace) => Effect.Effect<void, unknown>) => void

const refusal = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), (error) => {
    assert.instanceOf(error, TrustAccessDenied)
    return error instanceof TrustAccessDenied ? error.detail : ""
  })

const secret = (payload: string, name = "a secret") => ({ name, payload: Redacted.make(payload) })

export const vaultContract = (test: Test) => {
  test("a secret is read by any trust of its project, as it was stored", ({ vault, delegation }) =>
    Effect.gen(function* () {
      const by = yield* delegation("one")
      for (const payload of ["x", "Grüße, \u{10FFFF}\n", "\uFEFFmarked", "k".repeat(20_000)]) {
        const href = yield* vault.store(by, secret(payload))
        const read = yield* vault.read(yield* delegation("one"), href)
        assert.strictEqual(Redacted.value(read), payload)
      }
    }))

  test("what a tenant put there is read, be it text or bytes of text", (place) =>
    Effect.gen(function* () {
      const { vault, delegation, put } = place
      for (const kind of ["text", "bytes"] as const) {
        const href = yield* put("one", new TextEncoder().encode(`schön ${kind}`), kind)
        const read = yield* vault.read(yield* delegation("one"), href)
        assert.strictEqual(Redacted.value(read), `schön ${kind}`)
      }
      const href = yield* put("one", new Uint8Array([0xff, 0xfe, 0x00]), "bytes")
      assert.strictEqual(yield* refusal(vault.read(yield* delegation("one"), href)), secret_denied)
    }))

  test("of an href nothing counts but the UUID", ({ vault, delegation }) =>
    Effect.gen(function* () {
      const by = yield* delegation("one")
      const href = yield* vault.store(by, secret("s"))
      const id = /[0-9a-f-]{36}$/.exec(href)?.[0] ?? ""
      for (const other of [
        `http://169.254.169.254/v1/secrets/${id}`,
        `https://user@example.org:1/key-manager/v1/secrets/${id.toUpperCase()}/`,
        `/v1/secrets/${id}`,
      ]) {
        assert.strictEqual(Redacted.value(yield* vault.read(by, other)), "s")
      }
      for (const none of ["", href.slice(0, -1), `${href}/payload`, `${href}?x`, `x/${id}`]) {
        assert.strictEqual(yield* refusal(vault.read(by, none)), secret_denied)
        assert.strictEqual(yield* refusal(vault.remove(by, none)), secret_denied)
      }
    }))

  test("another project's secret is denied in the same words as a missing one", (place) =>
    Effect.gen(function* () {
      const { vault, delegation } = place
      const theirs = yield* delegation("other")
      const href = yield* vault.store(yield* delegation("one"), secret("s"))
      const none = href.replace(/[0-9a-f-]{36}$/, "00000000-0000-4000-8000-000000000000")
      assert.strictEqual(yield* refusal(vault.read(theirs, href)), secret_denied)
      assert.strictEqual(yield* refusal(vault.read(theirs, none)), secret_denied)
      assert.strictEqual(yield* refusal(vault.remove(theirs, href)), secret_denied)
      assert.strictEqual(Redacted.value(yield* vault.read(yield* delegation("one"), href)), "s")
    }))

  test("a token whose trust was revoked opens nothing and stores nothing", (place) =>
    Effect.gen(function* () {
      const { vault, delegation } = place
      const href = yield* vault.store(yield* delegation("one"), secret("s", "kept"))
      const revoked = yield* place.revoked
      yield* refusal(vault.read(revoked, href))
      yield* refusal(vault.store(revoked, secret("t", "late")))
      yield* refusal(vault.find(revoked, "kept"))
      yield* refusal(vault.remove(revoked, href))
      const by = yield* delegation("one")
      assert.strictEqual(Redacted.value(yield* vault.read(by, href)), "s")
      assert.isUndefined(yield* vault.find(by, "late"))
    }))

  test("a secret is found by its name in its project, the newest of several", (place) =>
    Effect.gen(function* () {
      const { vault, delegation } = place
      const by = yield* delegation("one")
      assert.isUndefined(yield* vault.find(by, "named"))
      yield* vault.store(by, secret("first", "named"))
      const newest = yield* vault.store(by, secret("second", "named"))
      yield* vault.store(by, secret("third", "named otherwise"))
      yield* vault.store(yield* delegation("other"), secret("fourth", "named"))
      const found = (yield* vault.find(by, "named")) ?? ""
      assert.strictEqual(Redacted.value(yield* vault.read(by, found)), "second")
      assert.strictEqual(found.slice(-36), newest.slice(-36))
      assert.isUndefined(yield* vault.find(yield* delegation("other"), "named otherwise"))
    }))

  test("a removed secret is gone, and removing it again has no effect", (place) =>
    Effect.gen(function* () {
      const { vault, delegation } = place
      const by = yield* delegation("one")
      const href = yield* vault.store(by, secret("s", "short"))
      yield* vault.remove(by, href)
      yield* vault.remove(by, href)
      assert.strictEqual(yield* refusal(vault.read(by, href)), secret_denied)
      assert.isUndefined(yield* vault.find(by, "short"))
    }))

  test("a payload does not show when it is printed", ({ vault, delegation }) =>
    Effect.gen(function* () {
      const by = yield* delegation("one")
      const read = yield* vault.read(by, yield* vault.store(by, secret("hunter2")))
      assert.notInclude(`${inspect(read)} ${JSON.stringify({ read })}`, "hunter2")
    }))
}
