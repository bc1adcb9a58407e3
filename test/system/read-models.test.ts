import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { type Log, LogUnavailable } from "#events/log.ts"
import { type ReadModelDifference, ReadModelsGroup } from "#gateway/system/apis/read-models.ts"
import {
  compareReadModel,
  listReadModels,
  type Operated,
  ReadModels,
  rebuildReadModel,
} from "#gateway/system/read-models.ts"
import { logMemory } from "#journal"
import { SystemModel } from "#projections/system/blueprint.ts"
import { sqlite } from "#sqlite"
import { Count, Counter } from "../world/counter.ts"
import { as, type Served, serveHttp } from "../world/http.ts"
import { temporaryFolder } from "../world/programs/nats.ts"

const Api = HttpApi.make("system").add(ReadModelsGroup)
const handlers = HttpApiBuilder.group(Api, "read-models", (group) =>
  group
    .handle("list", () => listReadModels)
    .handle("rebuild", rebuildReadModel)
    .handle("difference", compareReadModel),
)

const count = Effect.fnUntraced(function* (by: number) {
  const commands = yield* Commands
  const at = "2026-11-20T12:00:00.000Z"
  const origin = { command_id: crypto.randomUUID(), actor: "test", at }
  return yield* commands.send(origin, address(Counter, "x", Count.make({ by })))
})

/** Operations that these tests do not use. */
const no_dump = Effect.succeed({})
const no_difference = Effect.die(new Error("not asked for"))

/** A read model at position 1, whose rebuild has the given result. */
const standing = (rebuild: Operated["rebuild"]): Operated => ({
  part: "test",
  position: Effect.succeed(1),
  rebuild,
  difference: no_difference,
  dump: no_dump,
})

interface Asked extends Served {
  readonly post: (name: string, headers?: Record<string, string>) => Promise<Response>
}

const withModels = <A>(
  others: (trace: Array<string>) => ReadonlyArray<readonly [string, Operated]>,
  body: (request: Asked, trace: Array<string>) => Promise<A>,
) =>
  Effect.gen(function* () {
    for (const by of [1, 2, 3]) yield* count(by)
    const model = yield* SystemModel
    yield* model.catchUp
    const trace: Array<string> = []
    const models = new Map<string, Operated>([["system", { ...model, part: "" }], ...others(trace)])
    const registry = yield* Layer.build(ReadModels.layer(models))
    const context = yield* Effect.context<Log>()
    const served = yield* serveHttp([
      {
        name: "system",
        api: Api,
        routes: Effect.map(
          HttpRouter.toHttpEffect(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))),
          Effect.provideContext(Context.merge(context, registry)),
        ),
      },
    ])
    const post = (name: string, headers: Record<string, string> = {}) =>
      served.fetch(`/v1/admin/read-models/${name}/rebuild`, {
        method: "POST",
        headers: { ...as("admin"), ...headers },
      })
    return yield* Effect.promise(() => body({ ...served, post }, trace))
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.unwrap(
        Effect.map(temporaryFolder, (folder) =>
          SystemModel.layer([]).pipe(
            Layer.provide(sqlite(folder)),
            Layer.provideMerge(host),
            Layer.provideMerge(Layer.fresh(logMemory)),
          ),
        ),
      ),
    ),
  )

const none = () => []

describe("GET /v1/admin/read-models", () => {
  it.live("answers how far each has come, and how far it is behind", () =>
    withModels(
      () => [["late", standing(Effect.succeed(1))]],
      async ({ fetch }) => {
        const response = await fetch("/v1/admin/read-models", { headers: as("admin") })
        assert.deepEqual(await response.json(), {
          read_models: [
            { name: "late", position: 1, behind: 2 },
            { name: "system", position: 3, behind: 0 },
          ],
        })
      },
    ),
  )
})

describe("POST /v1/admin/read-models/{name}/rebuild", () => {
  it.live("builds it from nothing and answers 202 with the position it shows", () =>
    withModels(none, async ({ post }) => {
      const response = await post("system")
      assert.equal(response.status, 202)
      assert.deepEqual(await response.json(), { name: "system", position: 3 })
    }),
  )

  it.live("says each second that it goes on, where lines are asked for", () =>
    withModels(
      () => [["slow", standing(Effect.as(Effect.sleep("1500 millis"), 7))]],
      async ({ post }) => {
        const response = await post("slow", { accept: "application/x-ndjson" })
        assert.equal(response.status, 202)
        assert.equal(response.headers.get("content-type"), "application/x-ndjson")
        const lines = (await response.text()).trimEnd().split("\n")
        assert.deepEqual(
          lines.map((line) => JSON.parse(line)),
          [
            { name: "slow", seconds: 1 },
            { name: "slow", position: 7 },
          ],
        )
      },
    ),
  )

  it.live("answers 503 when the log is out of reach, also as the last line", () =>
    withModels(
      () => [["cut", standing(Effect.fail(new LogUnavailable({ detail: "no bus" })))]],
      async ({ post }) => {
        const response = await post("cut")
        assert.equal(response.status, 503)
        assert.include(await response.text(), "svc.backend_unavailable")
        const streamed = await post("cut", { accept: "application/x-ndjson" })
        const { error } = (await streamed.json()) as { error: { code: string; detail: string } }
        assert.deepEqual([error.code, error.detail], ["svc.backend_unavailable", "no bus"])
      },
    ),
  )

  it.live("builds one read model after another request has", () =>
    withModels(
      (trace) => [
        [
          "slow",
          standing(
            Effect.gen(function* () {
              trace.push("begin")
              yield* Effect.sleep("20 millis")
              trace.push("end")
              return 1
            }),
          ),
        ],
      ],
      async ({ post }, trace) => {
        await Promise.all([post("slow"), post("slow")])
        assert.deepEqual(trace, ["begin", "end", "begin", "end"])
      },
    ),
  )

  it.live("is compared with the log where that is asked, and answers what differs", () =>
    withModels(none, async ({ fetch }) => {
      const ask = (name: string) =>
        fetch(`/v1/admin/read-models/${name}/difference`, { method: "POST", headers: as("admin") })
      const response = await ask("system")
      assert.equal(response.status, 200)
      const { name, position, count, rows } = (await response.json()) as ReadModelDifference
      assert.deepEqual([name, position, count, rows], ["system", 3, 0, []])
      assert.equal((await ask("nothing")).status, 404)
    }),
  )

  it.live("answers 404 to a name that is none", () =>
    withModels(none, async ({ post }) => {
      const response = await post("nothing")
      assert.equal(response.status, 404)
      assert.include(await response.text(), "This process has no read model nothing.")
    }),
  )

  it.live("is the operators' alone", () =>
    withModels(none, async ({ fetch, post }) => {
      assert.equal((await fetch("/v1/admin/read-models")).status, 401)
      assert.equal((await fetch("/v1/admin/read-models", { headers: as("reader") })).status, 403)
      assert.equal((await post("system", as("reader"))).status, 403)
      const path = "/v1/admin/read-models/system/difference"
      assert.equal((await fetch(path, { method: "POST" })).status, 401)
      assert.equal((await fetch(path, { method: "POST", headers: as("reader") })).status, 403)
    }),
  )
})
