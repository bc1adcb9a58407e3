import { createPrivateKey, generateKeyPairSync } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { exportJWK, exportSPKI, SignJWT, UnsecuredJWT } from "jose"
import { tryInOrder } from "#adapters/identity/identity.ts"
import { jwts } from "#adapters/identity/jwt.ts"
import type { Settings } from "#schemas/settings.ts"
import { callerOf, reason } from "../../world/authenticate.ts"
import { given } from "../../world/settings-given.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-jwt-"))
afterAll(() => rmSync(folder, { recursive: true }))

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
const other_rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
const ed25519 = generateKeyPairSync("ed25519")
const shared = "a shared secret of at least 32 bytes"
const jwks_file = join(folder, "jwks.json")
const jwks = JSON.stringify({
  keys: [
    { ...(await exportJWK(rsa.publicKey)), kid: "r", alg: "RS256" },
    { ...(await exportJWK(ed25519.publicKey)), kid: "e", alg: "EdDSA" },
  ],
})
writeFileSync(jwks_file, jwks)

describe("a JWT", () => {
  const settings = (change: Partial<Settings["auth"]["jwt"]> = {}) => ({
    ...given({}).auth.jwt,
    hs256_secret: Redacted.make(shared),
    jwks_file,
    ...change,
  })
  /** The test clock starts at 0, so these claims are valid from second 0 to second 60. */
  const claims = { sub: "alice", exp: 60, iat: 0, scope: "blobs:read blobs:write" }
  const secret = new TextEncoder().encode(shared)
  type Key = Parameters<SignJWT["sign"]>[0]
  const sign = (alg: string, key: Key, payload: object = claims) =>
    Effect.promise(() => new SignJWT({ ...payload }).setProtectedHeader({ alg }).sign(key))

  for (const [alg, key] of [
    ["HS256", secret],
    ["RS256", rsa.privateKey],
    ["EdDSA", ed25519.privateKey],
  ] as const) {
    it.effect(`signed with ${alg} is known`, () =>
      Effect.gen(function* () {
        const authenticate = yield* jwts(settings())
        expect(yield* callerOf(authenticate, yield* sign(alg, key))).toEqual({
          actor: "jwt:alice",
          kind: "jwt",
          scopes: new Set(["blobs:read", "blobs:write"]),
          roles: new Set(),
        })
      }),
    )
  }
  it.effect("carries scopes as a list, roles, project, domain and user", () =>
    Effect.gen(function* () {
      const ids = { project_id: "p", domain_id: "d", user_id: "u" }
      const payload = { sub: "a", exp: 60, scp: ["blobs:read"], roles: ["admin"], ...ids }
      const token = yield* sign("HS256", secret, payload)
      expect(yield* callerOf(yield* jwts(settings()), token)).toEqual({
        actor: "jwt:a",
        kind: "jwt",
        scopes: new Set(["blobs:read"]),
        roles: new Set(["admin"]),
        ...ids,
      })
    }),
  )

  const refused = (
    name: string,
    because: string,
    token: Effect.Effect<string>,
    change: Partial<Settings["auth"]["jwt"]> = {},
  ) =>
    it.effect(`${name} is refused: ${because}`, () =>
      Effect.gen(function* () {
        const authenticate = tryInOrder([yield* jwts(settings(change))])
        expect(yield* reason(authenticate, yield* token)).toBe(because)
      }),
    )
  const with_claims = (change: object) => sign("HS256", secret, { ...claims, ...change })

  refused("signed with another shared secret", "signature", sign("HS256", Buffer.alloc(32, 7)))
  refused("signed with another RSA key", "signature", sign("RS256", other_rsa.privateKey))
  refused(
    "with changed claims",
    "signature",
    Effect.map(sign("RS256", rsa.privateKey), (token) => {
      const [header, , signature] = token.split(".")
      const payload = Buffer.from(JSON.stringify({ ...claims, sub: "admin" })).toString("base64url")
      return `${header}.${payload}.${signature}`
    }),
  )
  const confused = Effect.flatMap(
    Effect.promise(() => exportSPKI(rsa.publicKey)),
    (pem) => sign("HS256", new TextEncoder().encode(pem)),
  )
  refused("HS256 with the RSA public key as its secret", "signature", confused)
  refused("HS256 with the RSA public key, where no secret is set", "algorithm", confused, {
    hs256_secret: Redacted.make(""),
  })
  refused(
    "without a signature (alg none)",
    "algorithm",
    Effect.sync(() => new UnsecuredJWT({ ...claims }).encode()),
  )
  refused("of an algorithm that settings exclude", "algorithm", sign("HS256", secret), {
    algorithms: ["RS256"],
  })
  refused("of an algorithm that is not configured", "algorithm", sign("HS512", Buffer.alloc(64, 1)))
  refused("RS256 where no public keys are set", "algorithm", sign("RS256", rsa.privateKey), {
    jwks_file: "",
  })
  refused("that expired", "expired", with_claims({ exp: 0 }))
  refused("that never expires", "claims", sign("HS256", secret, { sub: "alice" }))
  refused("of no subject", "claims", sign("HS256", secret, { exp: 60 }))
  refused("that is not yet valid", "not_yet_valid", with_claims({ nbf: 30 }))
  refused("of another issuer", "claims", with_claims({ iss: "b" }), { issuer: "a" })
  refused("of no issuer", "claims", with_claims({}), { issuer: "a" })
  refused("for another audience", "claims", with_claims({ aud: ["b"] }), { audience: "a" })
  refused("with a name of two lines", "claims", with_claims({ sub: "a\nb" }))
  refused("with roles that are no list", "claims", with_claims({ roles: "admin" }))
  refused("of three words", "malformed", Effect.succeed("not.a.token"))
  refused("longer than a header", "malformed", Effect.succeed(`a.b.${"c".repeat(16_384)}`))
  refused("where no key is set", "unknown", sign("HS256", secret), {
    hs256_secret: Redacted.make(""),
    jwks_file: "",
  })

  it.effect("of the named issuer and audience is known", () =>
    Effect.gen(function* () {
      const authenticate = yield* jwts(settings({ issuer: "a", audience: "b" }))
      yield* callerOf(authenticate, yield* with_claims({ iss: "a", aud: ["x", "b"] }))
    }),
  )
  it.effect("lives until its last second, and by the tolerance longer", () =>
    Effect.gen(function* () {
      const strict = yield* jwts(settings())
      const tolerant = yield* jwts(settings({ clock_tolerance_seconds: 5 }))
      const token = yield* with_claims({})
      yield* TestClock.adjust("59 seconds")
      yield* callerOf(strict, token)
      yield* TestClock.adjust("2 seconds")
      expect(yield* reason(strict, token)).toBe("expired")
      yield* callerOf(tolerant, token)
    }),
  )
  it.effect("is known at once for a minute after it was verified, and not before that", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(120_000)
      const authenticate = yield* jwts(settings())
      const token = yield* with_claims({ exp: 600 })
      const isKnown = () => Exit.isExit(authenticate({ token: () => token }))
      expect(isKnown()).toBe(false)
      const caller = yield* callerOf(authenticate, token)
      expect(isKnown()).toBe(true)
      expect(yield* callerOf(authenticate, token)).toBe(caller)
      yield* TestClock.adjust("59 seconds")
      expect(isKnown()).toBe(true)
      yield* TestClock.adjust("1 second")
      expect(isKnown()).toBe(false)
      yield* callerOf(authenticate, token)
      yield* TestClock.setTime(120_000)
      expect(isKnown()).toBe(false)
    }),
  )
  it.effect("cannot be checked with a file of keys that is missing or damaged", () =>
    Effect.gen(function* () {
      const damaged = join(folder, "damaged.json")
      writeFileSync(damaged, `{"keys": "${shared}"}`)
      for (const jwks_file of ["/no/jwks.json", damaged]) {
        const { message } = yield* Effect.flip(jwts(settings({ jwks_file })))
        assert.include(message, jwks_file)
        assert.notInclude(message, shared)
      }
    }),
  )
})

describe("public keys at a URL", () => {
  /** Serves the result of `answer` at a loopback address and counts the requests. */
  const serve = (answer: () => { readonly status: number; readonly body: string }) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const served = { requests: 0, url: "" }
        const server = createServer((_, response) => {
          served.requests++
          const { status, body } = answer()
          response.writeHead(status, { "content-type": "application/json" }).end(body)
        })
        await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
        // A server that listens on TCP has an address with a port.
        const { port } = server.address() as AddressInfo
        served.url = `http://127.0.0.1:${port}/jwks`
        return { served, server }
      }),
      ({ server }) => Effect.sync(() => server.close()),
    )
  const token = Effect.promise(() =>
    new SignJWT({ sub: "a", exp: 60 })
      .setProtectedHeader({ alg: "RS256", kid: "r" })
      .sign(createPrivateKey(rsa.privateKey.export({ type: "pkcs8", format: "pem" }))),
  )
  const at = (jwks_url: string) => jwts({ ...given({}).auth.jwt, jwks_url })

  it.effect("are fetched once and kept", () =>
    Effect.gen(function* () {
      const { served } = yield* serve(() => ({ status: 200, body: jwks }))
      const authenticate = yield* at(served.url)
      yield* callerOf(authenticate, yield* token)
      yield* callerOf(authenticate, yield* token)
      expect(served.requests).toBe(1)
    }),
  )
  for (const [what, answer] of [
    ["an error", { status: 500, body: "" }],
    ["no keys", { status: 200, body: "{}" }],
    ["too much", { status: 200, body: jwks + " ".repeat(2 ** 20) }],
  ] as const) {
    it.effect(`that answers ${what} make it unavailable, not unauthenticated`, () =>
      Effect.gen(function* () {
        const { served } = yield* serve(() => answer)
        const tag = yield* reason(yield* at(served.url), yield* token)
        expect(tag).toBe("IdentityUnavailable")
      }),
    )
  }
  it.effect("at an unreachable URL make it unavailable", () =>
    Effect.gen(function* () {
      const authenticate = yield* at("http://127.0.0.1:1/jwks")
      expect(yield* reason(authenticate, yield* token)).toBe("IdentityUnavailable")
    }),
  )
})
