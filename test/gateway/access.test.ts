import { Effect, Layer, Schema, Scope } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { mayUse, Needs, PolicyRules } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import { appOf } from "#gateway/routes.ts"
import { documented } from "#gateway/system/document.ts"
import { parseRule, type Rules } from "#schemas/policy-rule.ts"
import { as, longest_token, odd_tokens, type Served, serveHttp } from "../world/http.ts"
import { probe } from "./probe.ts"

const rulesOf = (rules: Readonly<Record<string, string>>): Rules =>
  new Map(Object.entries(rules).map(([name, rule]) => [name, parseRule(rule)]))

const ordinary = rulesOf({
  tenant: "role:member and project_id:%(project_id)s",
  owner: "role:svc_domain_owner and domain_id:%(domain_id)s",
  either: "rule:tenant or rule:owner",
})
let rules = ordinary

const endpoint = (name: "tenant" | "owner" | "either" | "unwritten") =>
  HttpApiEndpoint.get(name, `/v1/ruled/${name}`, { success: Schema.String }).annotate(Needs, {
    rule: name,
  })
const Api = HttpApi.make("ruled").add(
  HttpApiGroup.make("ruled").add(
    endpoint("tenant"),
    endpoint("owner"),
    endpoint("either"),
    endpoint("unwritten"),
    HttpApiEndpoint.get("open", "/v1/ruled/open", { success: Schema.String }).annotate(
      Needs,
      "public",
    ),
  ),
)
const inside = () => Effect.succeed("inside")
const handlers = HttpApiBuilder.group(Api, "ruled", (group) =>
  group.handleAll({
    tenant: inside,
    owner: inside,
    either: inside,
    unwritten: inside,
    open: inside,
  }),
)

const scope = Effect.runSync(Scope.make())
const servedWith = (settings: Parameters<typeof serveHttp>[1]) =>
  serveHttp(
    [
      {
        name: "ruled",
        api: Api,
        routes: Effect.contextWith((known) =>
          appOf(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers)), known),
        ),
      },
      probe("blob-storage", "/v1/blobs"),
    ],
    settings,
  ).pipe(
    Effect.provideService(PolicyRules, () => rules),
    Scope.provide(scope),
  )
let served: Served
let elsewhere: Served
beforeAll(async () => {
  served = await Effect.runPromise(servedWith({}))
  const www_authenticate_uri = "https://keystone.example.org/v3"
  elsewhere = await Effect.runPromise(
    servedWith({ settings: { keystone_authtoken: { www_authenticate_uri } } }),
  )
})
afterAll(() => Effect.runPromise(Scope.close(scope, Effect.runSync(Effect.exit(Effect.void)))))

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  served.fetch(path, { headers })
const status = async (path: string, headers?: Readonly<Record<string, string>>) =>
  (await get(path, headers)).status

describe("an endpoint that names a rule", () => {
  it.each([
    ["member", [200, 403, 200, 403]],
    ["stranger", [403, 403, 403, 403]],
    ["owner", [403, 200, 200, 403]],
    ["admin", [403, 403, 403, 403]],
    ["nobody", [401, 401, 401, 401]],
  ])("is open to %s as the rule says, and closed where no rule is", async (token, expected) => {
    const paths = ["tenant", "owner", "either", "unwritten"].map((name) => `/v1/ruled/${name}`)
    const headers = paths.map((path) => status(path, { "x-auth-token": token }))
    expect(await Promise.all(headers)).toEqual(expected)
  })

  it("answers 403 in the envelope, with no challenge", async () => {
    const answer = await get("/v1/ruled/tenant", as("stranger"))
    expect(answer.headers.get("www-authenticate")).toBe(null)
    expect(await answer.json()).toEqual({
      code: "svc.forbidden",
      title: "Forbidden",
      detail: "The caller's role or scope does not allow this operation.",
      category: "tenant_action_required",
    })
  })

  it("follows rules that change while it is served", async () => {
    rules = rulesOf({ tenant: "role:reader" })
    expect(await status("/v1/ruled/tenant", as("stranger"))).toBe(200)
    expect(await status("/v1/ruled/tenant", as("member"))).toBe(403)
    rules = ordinary
    expect(await status("/v1/ruled/tenant", as("stranger"))).toBe(403)
  })

  it("appears in the API's document", () => {
    const { paths, components } = OpenApi.fromApi(documented([Api]))
    const expected = [{ keystone: [] }, { bearer: [] }]
    expect(paths["/v1/ruled/tenant"]?.get?.security).toEqual(expected)
    expect(paths["/v1/ruled/open"]?.get?.security).toEqual([])
    expect(components.securitySchemes).toHaveProperty("keystone.name", "X-Auth-Token")
  })
})

describe("a rule's credentials", () => {
  const caller: Caller = {
    actor: "a",
    kind: "issued",
    scopes: new Set(["blobs:read"]),
    roles: new Set(["r"]),
    project_id: "p",
    project_domain_id: "d",
    user_id: "u",
    user_domain_id: "e",
  }
  const may = (rule: string, who: Caller = caller) =>
    mayUse({ rule: "checked" }, who, () => rulesOf({ checked: rule }))

  it("are those that OpenStack's services have", () => {
    const held = [
      "user_id:u",
      "user_domain_id:e",
      "project_id:p",
      "project_domain_id:d",
      "role:r",
      "domain_id:None",
      "system_scope:None",
      "is_admin_project:True",
      "roles:r",
      "project_id:%(project_id)s",
      "not domain_id:%(domain_id)s",
    ]
    expect(held.filter((rule) => !may(rule))).toEqual([])
    for (const rule of ["actor:a", "kind:issued", "scopes:blobs:read", "domain_id:d"]) {
      expect(may(rule)).toBe(false)
    }
  })

  it("of who has no project, domain or user are None, and match no target", () => {
    const { actor, kind, scopes, roles } = caller
    const bare: Caller = { actor, kind, scopes, roles }
    expect(may("project_id:None and user_id:None and domain_id:None", bare)).toBe(true)
    expect(may("project_id:%(project_id)s or domain_id:%(domain_id)s", bare)).toBe(false)
  })

  it("without any rules are always rejected", () => {
    const none = Effect.runSync(PolicyRules)
    expect(mayUse({ rule: "default" }, caller, none)).toBe(false)
    expect(mayUse({ rule: "" }, caller, none)).toBe(false)
  })
})

describe("X-Auth-Token", () => {
  const path = "/v1/ruled/tenant"

  it("is what the identity service gave, and goes before Authorization", async () => {
    expect(await status(path, { "x-auth-token": "member" })).toBe(200)
    expect(await status(path, as("member"))).toBe(200)
    expect(await status(path, { ...as("member"), "x-auth-token": "unknown" })).toBe(401)
    const proxied = { authorization: "Basic cHJveHk6cHJveHk=", "x-auth-token": "member" }
    expect(await status(path, proxied)).toBe(200)
    expect(await status(path, { authorization: "Basic cHJveHk6cHJveHk=" })).toBe(401)
  })

  it("of 4096 characters is looked up", async () => {
    expect(await status(path, { "x-auth-token": longest_token })).toBe(200)
  })

  it.each(odd_tokens.filter((token) => token !== longest_token))(
    "that is empty, longer or more than visible ASCII is 401 without a look-up: %j",
    async (token) => {
      const answer = await get(path, { ...as("member"), "x-auth-token": token })
      expect(answer.status).toBe(401)
      expect(await answer.json()).toMatchObject({ code: "svc.unauthorized" })
    },
  )

  it("is the only credential: identity headers of the request are ignored", async () => {
    const claims = {
      "x-roles": "member,admin",
      "x-project-id": "p1",
      "x-user-id": "u1",
      "x-identity-status": "Confirmed",
      "x-domain-id": "d1",
      "x-is-admin-project": "True",
    }
    expect(await status(path, claims)).toBe(401)
    expect(await status(path, { ...claims, "x-auth-token": "stranger" })).toBe(403)
    expect(await status("/v1/ruled/owner", { ...claims, "x-auth-token": "member" })).toBe(403)
  })
})

describe("a 401", () => {
  it("says where tokens are had, on the paths of share protection", async () => {
    const answer = await get("/v1/ruled/tenant")
    const uri = new URL(served.url).origin
    const challenge = `Keystone uri="${uri}", Bearer realm="almanac"`
    expect(answer.headers.get("www-authenticate")).toBe(challenge)
    expect(await answer.json()).toMatchObject({ code: "svc.unauthorized" })
    const wrong = await get("/v1/ruled/tenant", { "x-auth-token": "expired" })
    const why = ', error="invalid_token"'
    expect(wrong.headers.get("www-authenticate")).toBe(challenge + why)
  })

  it("says what is configured there", async () => {
    const answer = await elsewhere.fetch("/v1/ruled/tenant")
    const uri = "https://keystone.example.org/v3"
    expect(answer.headers.get("www-authenticate")).toMatch(`Keystone uri="${uri}", Bearer `)
  })

  it("does not repeat an invalid Host", async () => {
    const answer = await served.raw(
      'GET /v1/ruled/tenant HTTP/1.1\r\nHost: a"; b="c\r\nConnection: close\r\n\r\n',
    )
    const [, challenge] = /www-authenticate: (.*)\r/i.exec(answer) ?? []
    expect(challenge).toBe('Keystone uri="http://localhost", Bearer realm="almanac"')
  })

  it("asks for a bearer token elsewhere, and 503 is no 401", async () => {
    expect((await get("/v1/blobs")).headers.get("www-authenticate")).toMatch(/^Bearer /)
    const down = await get("/v1/ruled/tenant", { "x-auth-token": "outage" })
    expect([down.status, down.headers.get("www-authenticate")]).toEqual([503, null])
  })

  it("is not needed where everybody may come in", async () => {
    expect(await status("/v1/ruled/open", { "x-auth-token": "" })).toBe(200)
  })
})
