/**
 * Share protection behind the HTTP layer: the real command host on an in-memory log, the real read
 * model, and in-memory versions of its other dependencies. Each response is checked against the API
 * document.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, type Scope } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { host } from "#actors/host.ts"
import { LiveWorkers } from "#actors/share-protection/ports/live-workers.ts"
import { httpTransport } from "#adapters/http/transport.ts"
import { PolicyRules } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import { openDoor } from "#gateway/door.ts"
import { Identity, Unauthenticated } from "#gateway/identity.ts"
import { mount } from "#gateway/routes.ts"
import { defaultRules } from "#gateway/share-protection/default-rules.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { parseRule } from "#schemas/policy-rule.ts"
import type { Settings } from "#schemas/settings.ts"
import { shareProtection } from "#server/share-protection/share-protection.ts"
import { sqlite } from "#sqlite"
import { frailLog } from "../../log/frail-log.ts"
import { temporaryFolder } from "../../programs/nats.ts"
import { given } from "../../settings-given.ts"
import { conformance } from "./conformance.ts"
import { adapters, domain_id, ports, project_a, project_b, World } from "./ports.ts"

const caller = (name: string, roles: ReadonlyArray<string>, scope: Partial<Caller>): Caller => ({
  actor: name,
  kind: "issued",
  scopes: new Set<string>(),
  roles: new Set(roles),
  user_id: `user-${name}`,
  user_domain_id: domain_id,
  ...scope,
})
const in_project_a = { project_id: project_a, project_domain_id: domain_id }
const in_project_b = { project_id: project_b, project_domain_id: domain_id }

/** Callers by token. */
const callers: Readonly<Record<string, Caller>> = {
  tenant: caller("a", ["member"], in_project_a),
  tenant_b: caller("b", ["member"], in_project_b),
  reader: caller("reader", ["reader"], in_project_a),
  owner: caller("owner", ["svc_domain_owner"], { domain_id }),
  other_owner: caller("other", ["svc_domain_owner"], { domain_id: "e".repeat(32) }),
  admin: caller("admin", ["admin", "svc_admin"], in_project_b),
  plain_admin: caller("plain-admin", ["admin"], in_project_b),
}

const identity = Layer.succeed(
  Identity,
  Identity.of({
    authenticate: ({ token }) => {
      const known = token === undefined ? undefined : callers[token()]
      if (known !== undefined) return Effect.succeed(known)
      const reason = token === undefined ? "missing" : "unknown"
      return Effect.fail(new Unauthenticated({ reason }))
    },
  }),
)

const machinery = Layer.mergeAll(
  host,
  ShareProtectionModel.layer.pipe(Layer.provide(Layer.unwrap(Effect.map(temporaryFolder, sqlite)))),
).pipe(Layer.provideMerge(frailLog))

/** Lines logged in this file's process, newest last. */
export const logged: Array<string> = []

const logging = Logger.layer([
  Logger.map(Logger.formatLogFmt, (line) => {
    logged.push(line)
  }),
])

const services = Layer.mergeAll(
  identity,
  httpTransport,
  LiveWorkers.memory,
  HttpServer.layerServices,
  machinery,
  ports,
  logging,
)
export type Services = Layer.Success<typeof services>

/** Typed like JSON.parse: tests assert the fields that they read. */
export type Body = Record<string, ReturnType<typeof JSON.parse>>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Body
}

export interface Ask {
  /** Empty: no token is sent. */
  readonly token?: string
  readonly headers?: Record<string, string>
}

/** `body` is sent as JSON; a string is sent unchanged. */
export type Client = (
  method: string,
  path: string,
  body?: unknown,
  ask?: Ask,
) => Effect.Effect<Answer>

export interface Setup {
  readonly shape?: "A" | "B"
  /** Without adapters to S3 and to a compute service. */
  readonly bare?: boolean
  readonly settings?: Parameters<typeof given>[0]
}

const rulesOf = (shape: "A" | "B") => {
  const rules = new Map(
    Object.entries(defaultRules(shape)).map(([name, rule]) => [name, parseRule(rule)] as const),
  )
  return Context.make(PolicyRules, () => rules)
}

const requestOf = (method: string, path: string, body: unknown, { token, headers = {} }: Ask) => {
  const text = typeof body === "string" || body === undefined ? body : JSON.stringify(body)
  return new Request(`http://almanac${path}`, {
    method,
    headers: {
      ...(token === "" ? {} : { "x-auth-token": token ?? "tenant" }),
      ...(text === undefined
        ? {}
        : {
            "content-type": "application/json",
            "content-length": String(new TextEncoder().encode(text).length),
          }),
      ...headers,
    },
    ...(text === undefined ? {} : { body: text }),
  })
}

/** A client of the service in its current configuration. */
export const opened = Effect.fnUntraced(function* ({ shape = "A", bare, settings = {} }: Setup) {
  const world = yield* World
  const current: Settings = given({ ...settings, api: { ...settings.api, shape } })
  const service = yield* shareProtection({
    settings: () => current,
    conductor: Effect.sync(() => world.conductor),
    jobs: Effect.succeed(undefined),
    outside: bare ? Context.empty() : yield* Layer.build(adapters),
  })
  const mounted = yield* mount(service)
  const door = yield* openDoor([mounted], () => current).pipe(Effect.provideContext(rulesOf(shape)))
  const conforms = conformance(service.api)
  const context = yield* Effect.context<never>()

  const ask: Client = Effect.fnUntraced(function* (method, path, body, input = {}) {
    const request = HttpServerRequest.fromWeb(requestOf(method, path, body, input))
    const response = yield* door.app.pipe(
      Effect.provideService(HttpServerRequest.HttpServerRequest, request),
      Effect.provide(door.context),
      Effect.scoped,
      Effect.orDie,
    )
    const web = HttpServerResponse.toWeb(response, { context })
    const text = yield* Effect.promise(() => web.text())
    const answer = {
      status: web.status,
      headers: web.headers,
      text,
      body: text === "" ? {} : JSON.parse(text),
    }
    conforms(method, path, answer)
    return answer
  })
  return ask
})

/** A test with its own service. */
export const served = (
  name: string,
  body: (ask: Client) => Effect.Effect<void, unknown, Services | Scope.Scope>,
  setup: Setup = {},
) =>
  it.live(name, () =>
    Effect.flatMap(opened(setup), body).pipe(Effect.provide(services), Effect.scoped),
  )

/** Asserts that this is the response, in document 2's envelope. */
export const isRefused = (
  { status, headers, body }: Answer,
  wanted: number,
  code: string,
  detail?: string | RegExp,
) => {
  assert.deepEqual([status, body.code], [wanted, code], JSON.stringify(body))
  assert.deepEqual(Object.keys(body).sort(), ["category", "code", "detail", "title"])
  assert.match(headers.get("content-type") ?? "", /^application\/json/)
  if (typeof detail === "string") assert.include(body.detail, detail)
  if (detail instanceof RegExp) assert.match(body.detail, detail)
}
