import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { SignJWT } from "jose"
import {
  developmentCredentials,
  developmentCredentialsPath,
} from "#adapters/identity/development-credentials.ts"
import { identity, tokenIssuer, tokensInMemory, tryInOrder } from "#adapters/identity/identity.ts"
import { certificates, staticTokens, subjectsOf } from "#adapters/identity/static.ts"
import {
  newToken,
  openTokenStore,
  sha256Of,
  token_pattern,
} from "#adapters/identity/token-store.ts"
import { Identity, Unauthenticated } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"
import { callerOf, ownTokens, reason } from "../../world/authenticate.ts"
import { given } from "../../world/settings-given.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-identity-"))
afterAll(() => rmSync(folder, { recursive: true }))
const freshFolder = () => mkdtempSync(join(folder, "data-"))
const nats = { url: "nats://127.0.0.1:4222", user: "reader", password: "first" }

const mode = (path: string) => statSync(path).mode & 0o777
const grant = { scopes: [], roles: [], project_id: "", domain_id: "", user_id: "" } as const

describe("an issued token", () => {
  const open = Effect.gen(function* () {
    const store = yield* openTokenStore(freshFolder())
    return { authenticate: tokensInMemory(store, yield* Clock.Clock), ...tokenIssuer(store) }
  })

  it.effect("is known with what it grants", () =>
    Effect.gen(function* () {
      const { authenticate, issue } = yield* open
      const token = yield* issue({
        name: "ci",
        scopes: ["blobs:read"],
        roles: ["member"],
        project_id: "p",
        domain_id: "d",
        user_id: "u",
      })
      expect(yield* callerOf(authenticate, Redacted.value(token))).toEqual({
        actor: "token:ci",
        kind: "issued",
        scopes: new Set(["blobs:read"]),
        roles: new Set(["member"]),
        project_id: "p",
        domain_id: "d",
        user_id: "u",
      })
    }),
  )
  it.effect("is known at once, first or last asked, where it never expires", () =>
    Effect.gen(function* () {
      const { authenticate, issue } = yield* open
      const token = Redacted.value(yield* issue({ scopes: [], roles: [] }))
      const nobody = () => Effect.fail(new Unauthenticated({ reason: "unknown" }))
      for (const all of [
        [authenticate, nobody],
        [nobody, authenticate],
      ]) {
        expect(Exit.isExit(callerOf(tryInOrder(all), token))).toBe(true)
      }
    }),
  )
  it.effect("is random and fit for a URL", () =>
    Effect.sync(() => {
      assert.match(newToken(), token_pattern)
      expect(new Set(Array.from({ length: 100 }, newToken)).size).toBe(100)
    }),
  )
  it.effect("expires at its second, and not before", () =>
    Effect.gen(function* () {
      const { authenticate, issue } = yield* open
      const token = yield* issue({ scopes: [], roles: [], ttl_seconds: 10 })
      yield* TestClock.adjust(9_999)
      yield* callerOf(authenticate, Redacted.value(token))
      yield* TestClock.adjust(1)
      expect(yield* reason(authenticate, Redacted.value(token))).toBe("expired")
    }),
  )
  it.effect("is forgotten a day after it expired", () =>
    Effect.gen(function* () {
      const { authenticate, issue } = yield* open
      const token = yield* issue({ scopes: [], roles: [], ttl_seconds: 10 })
      yield* TestClock.adjust("25 hours")
      yield* issue({ scopes: [], roles: [] })
      expect(yield* reason(authenticate, Redacted.value(token))).toBe("unknown")
    }),
  )
  it.effect("is unknown once it is revoked, and others are not", () =>
    Effect.gen(function* () {
      const { authenticate, issue, revoke } = yield* open
      const token = yield* issue({ name: "gone", scopes: [], roles: [] })
      const other = yield* issue({ name: "kept", scopes: [], roles: [] })
      expect(yield* revoke("gone")).toBe(1)
      expect(yield* revoke("gone")).toBe(0)
      expect(yield* reason(authenticate, Redacted.value(token))).toBe("unknown")
      yield* callerOf(authenticate, Redacted.value(other))
    }),
  )
  it.effect("survives a restart, also when many are issued at once", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const { issue } = tokenIssuer(yield* openTokenStore(data_dir))
      const all = Array.from({ length: 20 }, () => issue({ scopes: [], roles: [] }))
      const tokens = yield* Effect.all(all, { concurrency: "unbounded" })
      const authenticate = tokensInMemory(yield* openTokenStore(data_dir), yield* Clock.Clock)
      for (const token of tokens) yield* callerOf(authenticate, Redacted.value(token))
    }),
  )
  it.effect("is stored as a hash in a file that only its owner can read", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const { issue } = tokenIssuer(yield* openTokenStore(data_dir))
      const token = Redacted.value(yield* issue({ scopes: [], roles: [] }))
      const path = join(data_dir, "identity", "tokens.json")
      const text = readFileSync(path, "utf8")
      assert.notInclude(text, token)
      assert.notInclude(text, "alm_")
      assert.include(text, sha256Of(token))
      expect(mode(path)).toBe(0o600)
      expect(mode(join(data_dir, "identity"))).toBe(0o700)
      expect(readdirSync(join(data_dir, "identity"))).toEqual(["tokens.json"])
    }),
  )
  it.effect("is not looked for in a damaged file", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      yield* tokenIssuer(yield* openTokenStore(data_dir)).issue({ scopes: [], roles: [] })
      writeFileSync(join(data_dir, "identity", "tokens.json"), "{}")
      const { message } = yield* Effect.flip(openTokenStore(data_dir))
      assert.include(message, "tokens.json is not a token file")
    }),
  )
  it.effect("is refused when it is one that we never issued", () =>
    Effect.gen(function* () {
      const { authenticate } = yield* open
      for (const token of [newToken(), "alm_", "", "x"]) {
        expect(yield* reason(authenticate, token)).toBe("unknown")
      }
    }),
  )
})

describe("development principals", () => {
  const start = Effect.fnUntraced(function* (data_dir: string, password = "first") {
    const store = yield* openTokenStore(data_dir)
    const credentials = yield* developmentCredentials(data_dir, store, { ...nats, password })
    return { credentials, authenticate: tokensInMemory(store, yield* Clock.Clock) }
  })

  it.effect("are written to a private file of the documented format", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const { credentials } = yield* start(data_dir)
      const path = developmentCredentialsPath(data_dir)
      expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(credentials)
      expect(mode(path)).toBe(0o600)
      const keys = (value: object) => Object.keys(value).join()
      expect(keys(credentials)).toBe("blob,blob_read,tenant,tenant_b,domain_owner,admin,nats")
      expect(keys(credentials.tenant)).toBe("token,user_id,project_id,trust_id,share_id")
      expect(keys(credentials.tenant_b)).toBe("token,user_id,project_id,trust_id,share_id")
      expect(keys(credentials.domain_owner)).toBe("token,domain_id,project_id")
      expect(credentials.nats).toEqual(nats)
      assert.notInclude(readFileSync(join(data_dir, "identity/tokens.json"), "utf8"), "alm_")
    }),
  )
  it.effect("may do what the decisions say", () =>
    Effect.gen(function* () {
      const { credentials, authenticate } = yield* start(freshFolder())
      const caller = (name: "blob" | "blob_read" | "tenant" | "domain_owner" | "admin") =>
        callerOf(authenticate, credentials[name].token)
      const blob = yield* caller("blob")
      expect([...blob.scopes]).toEqual(["blobs:read", "blobs:write", "cluster:admin"])
      expect([...(yield* caller("blob_read")).scopes]).toEqual(["blobs:read"])
      expect(blob.roles.size).toBe(0)
      const tenant = yield* caller("tenant")
      expect([...tenant.roles]).toEqual(["member"])
      expect(tenant.project_id).toBe(credentials.tenant.project_id)
      expect(tenant.user_id).toBe(credentials.tenant.user_id)
      expect([tenant.actor, blob.actor]).toEqual([`user:${tenant.user_id}`, "token:blob"])
      assert.notStrictEqual(tenant.project_id, credentials.tenant_b.project_id)
      const owner = yield* caller("domain_owner")
      expect([...owner.roles]).toEqual(["svc_domain_owner"])
      expect([owner.domain_id, owner.project_id]).toEqual([
        credentials.domain_owner.domain_id,
        undefined,
      ])
      const admin = yield* caller("admin")
      expect([[...admin.roles], admin.actor]).toEqual([["admin", "svc_admin"], "token:admin"])
    }),
  )
  it.effect("keep their tokens at the next start, with the bus of that start", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const first = yield* start(data_dir)
      const second = yield* start(data_dir, "second")
      expect(second.credentials).toEqual({
        ...first.credentials,
        nats: { ...nats, password: "second" },
      })
      yield* callerOf(second.authenticate, first.credentials.blob.token)
      const file = JSON.parse(readFileSync(developmentCredentialsPath(data_dir), "utf8"))
      expect(file.nats.password).toBe("second")
    }),
  )
  it.effect("are created again when the file is missing, and the old tokens are revoked", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const first = yield* start(data_dir)
      const issued = yield* tokenIssuer(yield* openTokenStore(data_dir)).issue({
        scopes: [],
        roles: [],
      })
      rmSync(developmentCredentialsPath(data_dir))
      const { authenticate, credentials } = yield* start(data_dir)
      for (const name of ["blob", "blob_read", "tenant", "domain_owner", "admin"] as const) {
        expect(yield* reason(authenticate, first.credentials[name].token)).toBe("unknown")
        yield* callerOf(authenticate, credentials[name].token)
      }
      yield* callerOf(authenticate, Redacted.value(issued))
    }),
  )
  it.effect("are known again when only the token store is gone", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const first = yield* start(data_dir)
      rmSync(join(data_dir, "identity"), { recursive: true })
      const { authenticate } = yield* start(data_dir)
      yield* callerOf(authenticate, first.credentials.admin.token)
    }),
  )
  it.effect("are not taken from a damaged file, nor with a weak token", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const { credentials } = yield* start(data_dir)
      const path = developmentCredentialsPath(data_dir)
      for (const text of ["{", JSON.stringify({ ...credentials, admin: { token: "weak" } })]) {
        writeFileSync(path, text)
        assert.include((yield* Effect.flip(start(data_dir))).message, "is damaged: delete it")
      }
    }),
  )
})

describe("a static token", () => {
  const plain = { name: "a", token: Redacted.make("plain-token"), token_file: "", sha256: "" }
  const hashed = {
    name: "b",
    token: Redacted.make(""),
    token_file: "",
    sha256: sha256Of("hashed-token"),
  }
  const authenticate = staticTokens([
    { ...plain, ...grant, scopes: ["blobs:read"], project_id: "p" },
    { ...hashed, ...grant, roles: ["admin"] },
  ])

  it.effect("is known by itself or by its hash", () =>
    Effect.gen(function* () {
      expect(yield* callerOf(authenticate, "plain-token")).toEqual({
        actor: "token:a",
        kind: "static",
        scopes: new Set(["blobs:read"]),
        roles: new Set(),
        project_id: "p",
      })
      expect((yield* callerOf(authenticate, "hashed-token")).actor).toBe("token:b")
    }),
  )
  it.effect("is not known by anything else, nor by its own hash", () =>
    Effect.gen(function* () {
      for (const token of ["plain-toke", "plain-token2", "", hashed.sha256, undefined]) {
        expect(yield* reason(authenticate, token)).toBe("unknown")
      }
    }),
  )
})

describe("a client certificate", () => {
  const authenticate = certificates([
    { ...grant, subject: "CN=node-1", scopes: ["cluster:admin"] },
    { ...grant, subject: "URI:spiffe://a/b", roles: ["admin"] },
  ])
  const read = (...subjects: ReadonlyArray<string>) => authenticate({ certificate: { subjects } })

  it.effect("is known by its common name or an alternative name", () =>
    Effect.gen(function* () {
      const caller = yield* read("CN=node-1")
      expect([caller.actor, caller.kind]).toEqual(["cert:CN=node-1", "certificate"])
      expect([...caller.scopes]).toEqual(["cluster:admin"])
      expect([...(yield* read("CN=x", "URI:spiffe://a/b")).roles]).toEqual(["admin"])
    }),
  )
  it.effect("is unknown when it is not listed", () =>
    Effect.gen(function* () {
      for (const subject of ["CN=node-10", "DNS:node-1", "node-1"]) {
        expect((yield* Effect.flip(read(subject)))._tag).toBe("Unauthenticated")
      }
    }),
  )
  it.effect("does not stand in for a wrong token", () =>
    Effect.map(
      Effect.flip(authenticate({ token: () => "x", certificate: { subjects: ["CN=node-1"] } })),
      ({ _tag }) => expect(_tag).toBe("Unauthenticated"),
    ),
  )
  it("names itself by what Node reads in it", () => {
    expect(subjectsOf("a", "DNS:b, URI:spiffe://c, email:d, IP Address:1.2.3.4")).toEqual([
      "CN=a",
      "DNS:b",
      "URI:spiffe://c",
      "email:d",
    ])
    expect(subjectsOf(["a", "b"], undefined)).toEqual([])
    expect(subjectsOf(undefined, 'DNS:"a, DNS:admin"')).toEqual([])
  })
})

const shared = "a shared secret of at least 32 bytes"

describe("identity", () => {
  const build = Effect.fnUntraced(function* (settings: Settings) {
    const data_dir = freshFolder()
    const store = yield* openTokenStore(data_dir)
    const credentials = yield* developmentCredentials(data_dir, store, nats)
    const services = yield* Layer.build(identity(settings, ownTokens(store), credentials))
    const { authenticate } = Context.get(services, Identity)
    return { authenticate, credentials, issuer: tokenIssuer(store) }
  })
  const settings = given({
    auth: {
      tokens: [{ ...grant, name: "s", token: Redacted.make("static"), token_file: "", sha256: "" }],
      jwt: { ...given({}).auth.jwt, hs256_secret: Redacted.make(shared) },
    },
    tls: { client_certificates: [{ ...grant, subject: "CN=a" }] },
  })

  it.effect("knows every kind of caller", () =>
    Effect.gen(function* () {
      const { authenticate, credentials, issuer } = yield* build(settings)
      const jwt = yield* Effect.promise(() =>
        new SignJWT({ sub: "a", exp: 60 })
          .setProtectedHeader({ alg: "HS256" })
          .sign(new TextEncoder().encode(shared)),
      )
      const issued = Redacted.value(yield* issuer.issue({ scopes: [], roles: [] }))
      const kinds = yield* Effect.forEach(
        [credentials.blob.token, issued, "static", jwt],
        (token) => Effect.map(callerOf(authenticate, token), ({ kind }) => kind),
      )
      expect(kinds).toEqual(["development", "issued", "static", "jwt"])
      const { kind } = yield* authenticate({ certificate: { subjects: ["CN=a"] } })
      expect(kind).toBe("certificate")
    }),
  )
  it.effect("says what is missing, unknown or too long", () =>
    Effect.gen(function* () {
      const { authenticate } = yield* build(settings)
      expect(yield* reason(authenticate, undefined)).toBe("missing")
      expect(yield* reason(authenticate, "who")).toBe("unknown")
      expect(yield* reason(authenticate, "a".repeat(16_385))).toBe("malformed")
    }),
  )
  it.effect("reports that an expired token is expired, regardless of the other providers", () =>
    Effect.gen(function* () {
      const { authenticate, issuer } = yield* build(settings)
      const token = yield* issuer.issue({ scopes: [], roles: [], ttl_seconds: 1 })
      yield* TestClock.adjust("1 second")
      expect(yield* reason(authenticate, Redacted.value(token))).toBe("expired")
    }),
  )
  it.effect("takes everyone for the development tenant when it is off", () =>
    Effect.gen(function* () {
      const off = given({ api: { noauth: true, bind_host: "127.0.0.1" } })
      const { authenticate, credentials } = yield* build(off)
      for (const token of [undefined, "anything"]) {
        const caller = yield* callerOf(authenticate, token)
        expect(caller.project_id).toBe(credentials.tenant.project_id)
        expect([...caller.roles]).toEqual(["member", "svc_domain_owner", "admin", "svc_admin"])
        expect(caller.scopes.size).toBe(3)
        expect(caller.project_domain_id).toBe(credentials.domain_owner.domain_id)
      }
    }),
  )
})
