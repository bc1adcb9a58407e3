/** A service of rows whose answers may be kept, and all that they depend on, for tests. */
import { Agent, request } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Needs, PolicyRules } from "#gateway/access.ts"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, IdentityUnavailable, Unauthenticated } from "#gateway/identity.ts"
import { MadeOf, PublicWhen } from "#gateway/limits.ts"
import { requestMetrics } from "#gateway/metrics.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { appOf } from "#gateway/routes.ts"
import { Behind } from "#projections/waiting.ts"
import { parseRule, type Rules } from "#schemas/policy-rule.ts"
import type { Settings } from "#schemas/settings.ts"
import { NotFound } from "#schemas/share-protection/rejection.ts"
import { serveHttp, settingsWith } from "../http.ts"

const Row = Schema.Struct({ id: Schema.String, value: Schema.String, seen_by: Schema.String })

const apiOf = (made_of: "shown" | undefined) =>
  HttpApi.make("rows").add(
    HttpApiGroup.make("rows").add(
      HttpApiEndpoint.get("get", "/v1/rows/:id", {
        params: { id: Schema.String },
        success: Row,
        error: NotFound,
      })
        .annotate(Needs, { rule: "rows:get" })
        .annotate(MadeOf, made_of),
      HttpApiEndpoint.get("list", "/v1/rows", {
        query: { limit: Schema.optionalKey(Schema.FiniteFromString) },
        success: Schema.Array(Row),
      })
        .annotate(Needs, { roles: ["member", "admin"] })
        .annotate(MadeOf, made_of),
      HttpApiEndpoint.get("open", "/api/rows", { success: Row })
        .annotate(Needs, { roles: ["admin"] })
        .annotate(PublicWhen, ({ metrics }) => metrics.public)
        .annotate(MadeOf, made_of),
      HttpApiEndpoint.get("word", "/v1/word", { success: Schema.Json })
        .annotate(Needs, "public")
        .annotate(MadeOf, made_of && "nothing"),
      HttpApiEndpoint.get("now", "/v1/now", { success: Schema.Json }).annotate(Needs, "public"),
      HttpApiEndpoint.post("add", "/v1/rows", { success: Schema.Json }).annotate(Needs, "public"),
    ),
  )

const callerOf = (actor: string, roles: ReadonlyArray<string>): Caller => ({
  actor,
  kind: "static",
  scopes: new Set(),
  roles: new Set(roles),
  project_id: "p1",
  user_id: actor,
})

/** All that answers depend on. */
export interface World {
  rows: Map<string, string>
  /** Another object once rows changed; undefined where that cannot be told. */
  shown: object | undefined
  /** Happens while a request is answered. */
  meanwhile: () => void
  /** Happens while a request that was admitted waits for its position. */
  waiting: () => void
  position: number
  settings: Settings
  rules: Rules
  callers: Map<string, Caller>
}

export const rulesOf = (rule: string): Rules => new Map([["rows:get", parseRule(rule)]])

export const makeWorld = (): World => ({
  rows: new Map([
    ["a", "1"],
    ["b", 'é "2"'],
    ["c", "x".repeat(70_000)],
  ]),
  shown: {},
  meanwhile: () => undefined,
  waiting: () => undefined,
  position: 10,
  settings: settingsWith(),
  rules: rulesOf("role:member"),
  callers: new Map([
    ["member", callerOf("member", ["member"])],
    ["other", callerOf("other", ["member"])],
    ["admin", callerOf("admin", ["admin"])],
    ["asked", callerOf("asked", ["member"])],
  ]),
})

/** Knows callers by token at once, but for the one that it has to ask for. */
const identityOf =
  (world: World): Authenticate =>
  ({ token }) => {
    if (token === undefined) return Effect.fail(new Unauthenticated({ reason: "missing" }))
    const text = token()
    if (text === "outage") return Effect.fail(new IdentityUnavailable({ message: "no route" }))
    const known = world.callers.get(text)
    if (known === undefined) return Effect.fail(new Unauthenticated({ reason: "expired" }))
    return text === "asked" ? Effect.as(Effect.yieldNow, known) : Effect.succeed(known)
  }

const handlersOf = (api: ReturnType<typeof apiOf>, world: World, onAsked: () => void) => {
  const shown = (id: string) =>
    Effect.map(RequestContext, ({ caller }) => {
      onAsked()
      const value = world.rows.get(id) ?? ""
      world.meanwhile()
      return { id, value, seen_by: caller.actor }
    })
  return HttpApiBuilder.group(api, "rows", (of) =>
    of.handleAll({
      get: ({ params: { id } }) =>
        world.rows.has(id) ? shown(id) : Effect.fail(new NotFound({ detail: "No such row." })),
      list: ({ query: { limit = 2 } }) =>
        Effect.forEach([...world.rows.keys()].slice(0, limit), shown),
      open: () => shown("a"),
      word: () => Effect.as(Effect.sync(onAsked), { said: "ok" }),
      now: () => Effect.map(Effect.sync(onAsked), () => ({ rows: world.rows.size })),
      add: () => Effect.as(Effect.sync(onAsked), {}),
    }),
  )
}

/** Serves the rows; `asked` counts how often a handler was. */
export const serveRows = Effect.fnUntraced(function* (world: World, is_kept: boolean) {
  let asked = 0
  const requests = requestMetrics()
  const api = apiOf(is_kept ? "shown" : undefined)
  const handlers = handlersOf(api, world, () => {
    asked++
  })
  const service = {
    name: "rows",
    api,
    routes: appOf(HttpApiBuilder.layer(api).pipe(Layer.provide(handlers)), Context.empty()),
    waitFor: (position: number) =>
      Effect.suspend(() => {
        world.waiting()
        const is_shown = position <= world.position
        return is_shown ? Effect.void : Effect.fail(new Behind({ detail: "not yet" }))
      }),
    shown: () => (world.shown === undefined ? undefined : [world.shown]),
  }
  const clock = yield* Clock.Clock
  const served = yield* serveHttp([service], {
    current: () => world.settings,
    authenticate: identityOf(world),
    requests,
  }).pipe(
    Effect.provide(NodeHttpServer.layerHttpServices),
    Effect.provideService(PolicyRules, () => world.rules),
    // It stands still: nobody's rate is any better for how busy this machine is.
    Effect.provideService(Clock.Clock, {
      currentTimeMillis: clock.currentTimeMillis,
      currentTimeNanos: clock.currentTimeNanos,
      currentTimeMillisUnsafe: () => 1_000,
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      sleep: (duration) => clock.sleep(duration),
    }),
  )
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
    (agent) => Effect.sync(() => agent.destroy()),
  )
  return { ...served, requests, agent, asked: () => asked }
})

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export interface Answered {
  readonly status: number | undefined
  /** Lines in the order in which they came, the request's own id as `ID`. */
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

/** The answer, but for its date, with its request id read out of it. */
export const ask = (url: string, { method, path, headers }: Asked, agent: Agent) =>
  new Promise<Answered & { readonly request_id: string }>((resolve, reject) => {
    const sent = request(url + path, { method, headers, agent }, (answer) => {
      const parts: Array<Buffer> = []
      answer.on("data", (part) => parts.push(part))
      answer.on("error", reject)
      answer.on("end", () => {
        const request_id = String(answer.headers["x-request-id"])
        const { rawHeaders: raw } = answer
        const lines = raw.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${raw[i + 1]}`] : []))
        resolve({
          status: answer.statusCode,
          request_id,
          headers: lines
            .filter((line) => !/^date:/i.test(line))
            .map((line) => line.replaceAll(request_id, "ID")),
          body: Buffer.concat(parts).toString("latin1").replaceAll(request_id, "ID"),
        })
      })
    })
    sent.on("error", reject)
    sent.end()
  })
