import { assert, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { denials, Trusts } from "#actors/share-protection/ports/trusts.ts"
import { keystoneTokens } from "#adapters/identity/keystone.ts"
import { KeystoneSession, keystoneCall } from "#adapters/keystone/session.ts"
import { trustsKeystone } from "#adapters/share-protection/trusts-keystone.ts"
import {
  type Fake,
  fake,
  fake_password,
  ownToken,
  type Said,
  sessionOf,
} from "../../world/share-protection/openstack/fake.ts"

const tokens = "/v3/auth/tokens"

/** A fake cloud and a session with it. */
const opened = Effect.gen(function* () {
  const cloud = yield* fake
  const context = yield* sessionOf(cloud)
  return { cloud, context, session: Context.get(context, KeystoneSession) }
})

const issuing = (cloud: Fake, answer: () => Said) => {
  cloud.answers[`POST ${tokens}`] = answer
}

describe("the service user's session", () => {
  it.effect("asks for one token, however many want it at once", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      const all = yield* Effect.all(
        Array.from({ length: 20 }, () => session.token),
        { concurrency: "unbounded" },
      )
      expect(new Set(all.map((token) => Redacted.value(token)))).toEqual(new Set(["own-1"]))
      expect(cloud.count("POST", tokens)).toBe(1)
    }),
  )

  it.effect("asks for another one two minutes before it ends", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      let n = 0
      const expires_at = "1970-01-01T01:00:00.000000Z"
      const headers = () => ({ "x-subject-token": `t-${++n}` })
      issuing(cloud, () => ({
        status: 201,
        headers: headers(),
        body: ownToken(cloud.url, { expires_at }),
      }))
      const seen = Effect.map(session.token, Redacted.value)
      expect(yield* seen).toBe("t-1")
      yield* TestClock.adjust("57 minutes")
      expect(yield* seen).toBe("t-1")
      yield* TestClock.adjust("90 seconds")
      expect(yield* seen).toBe("t-2")
    }),
  )

  it.effect("whose token is refused asks once more with a new one, and not again", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      const refused = new Set(["own-1"])
      cloud.answers["GET /v3/x"] = ({ headers }) =>
        refused.has(String(headers["x-auth-token"])) ? { status: 401 } : { status: 200, body: {} }
      const call = keystoneCall(session, "GET", "/x")
      expect((yield* session.sendAsService(call)).status).toBe(200)
      expect([cloud.count("GET", "/v3/x"), cloud.count("POST", tokens)]).toEqual([2, 2])
      for (const token of ["own-2", "own-3"]) refused.add(token)
      const error = yield* Effect.flip(session.sendAsService(call))
      expect(error.detail).toBe("Keystone returned status 401.")
      expect([cloud.count("GET", "/v3/x"), cloud.count("POST", tokens)]).toEqual([4, 3])
    }),
  )

  it.effect("asks for one new token, however many calls were refused with the old one", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      cloud.answers["GET /v3/x"] = ({ headers }) =>
        headers["x-auth-token"] === "own-1" ? { status: 401 } : { status: 200, body: {} }
      const call = session.sendAsService(keystoneCall(session, "GET", "/x"))
      const all = Array.from({ length: 10 }, () => call)
      const answers = yield* Effect.all(all, { concurrency: "unbounded" })
      expect(answers.every(({ status }) => status === 200)).toBe(true)
      expect(cloud.count("POST", tokens)).toBe(2)
    }),
  )

  it.effect("is reported if Keystone rejects it, without its password", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      issuing(cloud, () => ({ status: 401, body: { error: { message: fake_password } } }))
      const error = yield* Effect.flip(session.token)
      expect(error.code).toBe("svc.backend_unavailable")
      assert.include(error.detail, "rejects the service user")
      assert.notInclude(JSON.stringify(error), fake_password)
    }),
  )

  it.effect("repeats what was cut off once, unless it might then be done twice", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      let drops = 1
      const cut = (): Said => (drops-- > 0 ? "drop" : { status: 200, body: {} })
      cloud.answers["GET /v3/x"] = cut
      cloud.answers["POST /v3/x"] = cut
      expect((yield* session.send(keystoneCall(session, "GET", "/x"))).status).toBe(200)
      drops = 2
      yield* Effect.flip(session.send(keystoneCall(session, "GET", "/x")))
      expect(cloud.count("GET", "/v3/x")).toBe(4)
      drops = 1
      yield* Effect.flip(session.send(keystoneCall(session, "POST", "/x")))
      expect(cloud.count("POST", "/v3/x")).toBe(1)
      drops = 1
      const issue = cloud.answers[`POST ${tokens}`]
      issuing(cloud, () => (drops-- > 0 ? "drop" : (issue?.(cloud.requests[0] as never) ?? "drop")))
      yield* session.token
    }),
  )

  it.effect("gives up on a response that is late, too long or a redirect", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      const elsewhere = { location: `${cloud.url}/v3/secret` }
      cloud.answers["GET /v3/hang"] = () => "hang"
      cloud.answers["GET /v3/long"] = () => ({ status: 200, body: "x".repeat(2 ** 24 + 1) })
      cloud.answers["GET /v3/away"] = () => ({ status: 302, headers: elsewhere })
      const ask = (path: string) => session.send(keystoneCall(session, "GET", path))
      const waiting = yield* Effect.forkChild(Effect.flip(ask("/hang")))
      yield* Effect.repeat(Effect.yieldNow, { until: () => cloud.count("GET", "/v3/hang") > 0 })
      yield* TestClock.adjust("20 seconds")
      expect((yield* Fiber.join(waiting)).detail).toBe(
        "Keystone cannot be reached: no response within 20 s.",
      )
      assert.include((yield* Effect.flip(ask("/long"))).detail, "cannot be reached")
      expect((yield* ask("/away")).status).toBe(302)
      expect(cloud.count("GET", "/v3/secret")).toBe(0)
    }),
  )

  it.effect("finds an endpoint by type, interface and region, also one that came later", () =>
    Effect.gen(function* () {
      const { cloud, session } = yield* opened
      expect(yield* session.endpoint("key-manager")).toBe(`${cloud.url}/barbican/v1`)
      expect(yield* session.endpoint("none", "key-manager")).toBe(`${cloud.url}/barbican/v1`)
      expect((yield* Effect.flip(session.endpoint("compute"))).detail).toBe(
        "The service catalogue has no public endpoint of type compute.",
      )
      const catalog = [
        {
          type: "compute",
          endpoints: [{ interface: "public", region_id: "here", url: "http://n/" }],
        },
      ]
      const body = ownToken(cloud.url, { catalog })
      issuing(cloud, () => ({ status: 201, headers: { "x-subject-token": "t" }, body }))
      expect(yield* session.endpoint("compute")).toBe("http://n")
    }),
  )
})

describe("a trust of Keystone", () => {
  const redeemed = Effect.fnUntraced(function* (own: number, trust: Said) {
    const { cloud, context, session } = yield* opened
    // A service token that is still valid does not prove that the password is unchanged.
    yield* session.token
    const { redeem } = yield* Effect.provide(Trusts, trustsKeystone).pipe(
      Effect.provideContext(context),
    )
    const issue = cloud.answers[`POST ${tokens}`]
    issuing(cloud, () => {
      const request = cloud.requests.at(-1)
      if (request === undefined) return "drop"
      if (request.body.includes("OS-TRUST")) return { status: 401 }
      return own === 201 ? (issue?.(request) ?? "drop") : { status: own }
    })
    cloud.answers["GET /v3/OS-TRUST/trusts/t%2F1"] = () => trust
    return yield* Effect.flip(redeem("t/1"))
  })

  it.effect("is not blamed for a password of ours that is wrong", () =>
    Effect.gen(function* () {
      const error = yield* redeemed(401, { status: 404 })
      expect(error.code).toBe("svc.backend_unavailable")
    }),
  )

  it.effect("that is gone is denied, and one that is there is worth another try", () =>
    Effect.gen(function* () {
      const gone = yield* redeemed(201, { status: 404 })
      expect([gone.code, gone.detail]).toEqual(["svc.trust_access_denied", denials.gone])
      const trust = {
        project_id: "p",
        trustor_user_id: "a",
        trustee_user_id: "svc-user",
        impersonation: true,
        remaining_uses: null,
        expires_at: null,
      }
      const there = yield* redeemed(201, { status: 200, body: { trust } })
      expect(there.code).toBe("svc.backend_unavailable")
      const down = yield* redeemed(201, { status: 500, body: "" })
      expect(down.code).toBe("svc.backend_unavailable")
    }),
  )
})

describe("a caller by Keystone", () => {
  const user = { id: "u1", domain: { id: "d1" } }
  const expires_at = "2100-01-01T00:00:00.000000Z"
  const validated = (token: object): Said => ({ status: 200, body: { token } })

  const asking = Effect.fnUntraced(function* (cache_s: number, answer: () => Said) {
    const { cloud, context } = yield* opened
    cloud.answers[`GET ${tokens}`] = answer
    const authenticate = yield* Effect.provideContext(keystoneTokens(cache_s), context)
    const who = (token: string) => authenticate({ token: () => token })
    return { cloud, who }
  })

  it.effect("has the roles and the scope of the token", () =>
    Effect.gen(function* () {
      let token: object = {}
      const { who } = yield* asking(0, () => validated({ user, expires_at, ...token }))
      token = { roles: [{ name: "member" }], project: { id: "p1", domain: { id: "d2" } } }
      const caller = yield* who("a")
      expect({ ...caller, roles: [...caller.roles], scopes: [...caller.scopes] }).toEqual({
        actor: "user:u1",
        kind: "keystone",
        scopes: [],
        roles: ["member"],
        user_id: "u1",
        user_domain_id: "d1",
        project_id: "p1",
        project_domain_id: "d2",
      })
      token = { roles: [{ name: "svc_domain_owner" }], domain: { id: "d1" } }
      const owner = yield* who("b")
      expect([owner.domain_id, owner.project_id]).toEqual(["d1", undefined])
      token = {}
      const nobody = yield* who("c")
      expect([nobody.roles.size, nobody.project_id, nobody.domain_id]).toEqual([
        0,
        undefined,
        undefined,
      ])
    }),
  )

  it.effect("is asked about once for all who ask at the same time, and then again", () =>
    Effect.gen(function* () {
      const { cloud, who } = yield* asking(0, () => validated({ user, expires_at }))
      yield* Effect.all(
        Array.from({ length: 20 }, () => who("a")),
        { concurrency: "unbounded" },
      )
      expect(cloud.count("GET", tokens)).toBe(1)
      yield* who("a")
      expect(cloud.count("GET", tokens)).toBe(2)
    }),
  )

  it.effect("is known for as long as the settings say, and a refusal never", () =>
    Effect.gen(function* () {
      let status = 404
      const { cloud, who } = yield* asking(60, () =>
        status === 200 ? validated({ user, expires_at }) : { status },
      )
      yield* Effect.flip(who("a"))
      status = 200
      yield* who("a")
      yield* who("a")
      expect(cloud.count("GET", tokens)).toBe(2)
      yield* TestClock.adjust("61 seconds")
      yield* who("a")
      expect(cloud.count("GET", tokens)).toBe(3)
    }),
  )

  it.effect("is known at once from then on, as hot routes want it, until the token ends", () =>
    Effect.gen(function* () {
      const ends = "1970-01-01T00:00:30.000000Z"
      const { cloud, who } = yield* asking(60, () => validated({ user, expires_at: ends }))
      expect(Exit.isExit(who("a"))).toBe(false)
      const caller = yield* who("a")
      const again = who("a")
      expect(Exit.isExit(again)).toBe(true)
      expect(yield* again).toBe(caller)
      expect(Exit.isExit(who("b"))).toBe(false)
      expect(cloud.count("GET", tokens)).toBe(1)
      yield* TestClock.adjust("31 seconds")
      expect(Exit.isExit(who("a"))).toBe(false)
      yield* who("a")
      expect(cloud.count("GET", tokens)).toBe(2)
    }),
  )

  it.effect("with a malformed token is rejected without a request to Keystone", () =>
    Effect.gen(function* () {
      const { cloud, who } = yield* asking(0, () => validated({ user, expires_at }))
      for (const token of ["", "x".repeat(4097), "grün", "a b", "a\tb"]) {
        expect((yield* Effect.flip(who(token)))._tag).toBe("Unauthenticated")
      }
      expect(cloud.requests.length).toBe(0)
      yield* who("x".repeat(4096))
    }),
  )

  it.effect("is refused where Keystone refuses, and not where it fails or we may not ask", () =>
    Effect.gen(function* () {
      let response: Said = { status: 404 }
      const { who } = yield* asking(0, () => response)
      const answer = () => Effect.map(Effect.flip(who("a")), ({ _tag }) => _tag)
      expect(yield* answer()).toBe("Unauthenticated")
      response = { status: 403, body: { error: { message: "a role is missing" } } }
      expect(yield* answer()).toBe("Unauthenticated")
      const message = "You are not authorized to perform the action: identity:validate_token."
      const others: ReadonlyArray<Said> = [
        { status: 403, body: { error: { message } } },
        { status: 401 },
        { status: 500, body: "" },
        { status: 200, body: "no JSON" },
        { status: 200, body: { token: {} } },
        "drop" as const,
      ]
      for (const other of others) {
        response = other
        expect(yield* answer()).toBe("IdentityUnavailable")
      }
    }),
  )
})
