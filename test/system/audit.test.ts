import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, type Scope } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Log, type Origin } from "#events/log.ts"
import { Audit } from "#gateway/system/apis/audit.ts"
import { auditAggregate, listAudit } from "#gateway/system/audit.ts"
import { logMemory } from "#journal"
import { detail } from "#projections/system/audit.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { AuditHistory, AuditPage, AuditState } from "#schemas/system/audit.ts"
import { sqlite } from "#sqlite"
import { Close, Count, Counter, CounterEvent } from "../world/counter.ts"
import { as, type Served, serveHttp } from "../world/http.ts"
import { temporaryFolder } from "../world/programs/nats.ts"

const Api = HttpApi.make("system").add(Audit)
const handlers = HttpApiBuilder.group(Api, "audit", (group) =>
  group.handle("list", listAudit).handle("aggregate", auditAggregate),
)

/** Names the counter from its events, so that details are visible. */
const details = [
  detail({
    part: "test.counter.named",
    event: CounterEvent,
    know: ({ type }) => ({ subject: `subject-of-${type}`, actor: "journalist" }),
  }),
]

const hour = (n: number) => new Date(Date.UTC(2026, 10, 20, n)).toISOString()

const send = Effect.fnUntraced(function* (
  id: string,
  command: Parameters<typeof Counter.decide>[1],
  origin: Partial<Origin> = {},
) {
  const commands = yield* Commands
  const request = { command_id: crypto.randomUUID(), actor: "alice", at: hour(8), ...origin }
  return yield* commands.send(request, address(Counter, id, command))
})

/** One commit an hour, 8 to 12 o'clock; any two differ in at least one filter. */
const story = Effect.gen(function* () {
  yield* send("a", Count.make({ by: 1 }), { at: hour(8) })
  yield* send("b", Count.make({ by: 2 }), { at: hour(9), actor: "bob", request_id: "request-9" })
  yield* send("a", Count.make({ by: 3 }), { at: hour(10), correlation_id: "chain-10" })
  yield* send("a", Close.make({}), { at: hour(11), cause: "3" })
  yield* send("named", Count.make({ by: 5 }), { at: hour(12) })
})

interface Running extends Served {
  readonly get: (path: string) => Promise<Response>
  readonly page: (query?: string) => Promise<AuditPage>
  readonly positions: (query?: string) => Promise<ReadonlyArray<number>>
}

const decodePage = Schema.decodeUnknownSync(AuditPage)

const withAudit = <A, E>(
  body: (served: Running) => Effect.Effect<A, E, Log | Commands | SystemModel | Scope.Scope>,
) =>
  Effect.gen(function* () {
    yield* Effect.orDie(story)
    const model = yield* SystemModel
    yield* Effect.orDie(model.catchUp)
    const context = yield* Effect.context<Log | SystemModel>()
    const served = yield* serveHttp([
      {
        name: "system",
        api: Api,
        routes: Effect.map(
          HttpRouter.toHttpEffect(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))),
          Effect.provideContext(context),
        ),
        waitFor: model.waitFor,
      },
    ])
    const get = (path: string) => served.fetch(path, { headers: as("admin") })
    const page = async (query = "") =>
      decodePage(await (await get(`/v1/admin/audit?${query}`)).json())
    const positions = async (query = "") =>
      (await page(query)).events.map(({ position }) => position)
    return yield* body({ ...served, get, page, positions })
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Layer.unwrap(
        Effect.map(temporaryFolder, (folder) =>
          SystemModel.layer(details).pipe(
            Layer.provide(sqlite(folder)),
            Layer.provideMerge(host),
            Layer.provideMerge(Layer.fresh(logMemory)),
          ),
        ),
      ),
    ),
  )

const promised = <A>(ask: () => Promise<A>) => Effect.promise(ask)

describe("GET /v1/admin/audit", () => {
  it.live("answers the events of the whole log, the newest first", () =>
    withAudit(({ page }) =>
      promised(async () => {
        const { events, position, next_marker } = await page()
        assert.deepEqual(
          events.map((event) => event.position),
          [5, 4, 3, 2, 1],
        )
        assert.equal(position, 5)
        assert.isUndefined(next_marker)
        assert.deepEqual(events[3], {
          position: 2,
          index: 0,
          at: hour(9),
          service: "test",
          aggregate: "counter",
          id: "b",
          subject: "b",
          type: "Counted",
          actor: "bob",
          request_id: "request-9",
          data: { by: 2 },
        })
        assert.equal(events[1]?.cause, "3")
      }),
    ),
  )

  const filters: ReadonlyArray<readonly [string, ReadonlyArray<number>]> = [
    ["service=test", [5, 4, 3, 2, 1]],
    ["service=other", []],
    ["aggregate=counter", [5, 4, 3, 2, 1]],
    ["aggregate=other", []],
    ["type=Closed", [4]],
    ["actor=bob", [2]],
    ["subject=a", [4, 3, 1]],
    ["request_id=request-9", [2]],
    ["correlation_id=chain-10", [3]],
    [`from=${hour(10)}`, [5, 4, 3]],
    [`to=${hour(10)}`, [2, 1]],
    [`from=${hour(9)}&to=${hour(11)}`, [3, 2]],
    ["from=2026-11-20T09:30:00Z&to=2026-11-20T10:30:00%2B00:00", [3]],
    ["from=2026-11-20T10:00:00%2B02:00&to=2026-11-20T10:30:00%2B01:00", [2, 1]],
    ["from=2030-01-01T00:00:00Z", []],
    ["to=2020-01-01T00:00:00Z", []],
    ["subject=a&type=Counted&order=asc", [1, 3]],
    ["order=asc", [1, 2, 3, 4, 5]],
    ["limit=2", [5, 4]],
    ["limit=2&order=asc", [1, 2]],
  ]
  it.live("narrows by each filter, and by several at once", () =>
    withAudit(({ positions }) =>
      promised(async () => {
        for (const [query, expected] of filters) {
          assert.deepEqual(await positions(query), expected, query)
        }
      }),
    ),
  )

  it.live("shows what an event knows better than its commit, and finds it by that", () =>
    withAudit(({ page, positions }) =>
      promised(async () => {
        const [event] = (await page("actor=journalist")).events
        assert.equal(event?.subject, "subject-of-Counted")
        assert.equal(event?.id, "named")
        assert.deepEqual(await positions("subject=subject-of-Counted"), [5])
      }),
    ),
  )

  it.live("leads from page to page without loss or doubling, in both orders", () =>
    withAudit(({ page }) =>
      promised(async () => {
        for (const order of ["asc", "desc"]) {
          const seen: Array<number> = []
          let marker = ""
          for (let pages = 0; pages < 10; pages++) {
            const { events, next_marker } = await page(`order=${order}&limit=2${marker}`)
            seen.push(...events.map(({ position }) => position))
            if (next_marker === undefined) break
            marker = `&marker=${next_marker}`
          }
          assert.deepEqual(seen, order === "asc" ? [1, 2, 3, 4, 5] : [5, 4, 3, 2, 1])
        }
      }),
    ),
  )

  it.live("takes a marker of an event that is not among those asked for", () =>
    withAudit(({ positions }) =>
      promised(async () => {
        assert.deepEqual(await positions("marker=3.7&type=Counted"), [3, 2, 1])
        assert.deepEqual(await positions("marker=99999999999.65535"), [5, 4, 3, 2, 1])
        assert.deepEqual(await positions("marker=0.0"), [])
      }),
    ),
  )

  it.live("distinguishes the events of one commit", () =>
    withAudit(({ page }) =>
      Effect.gen(function* () {
        const log = yield* Log
        const model = yield* SystemModel
        const events = [1, 2, 3].map((by) => ({ type: "Counted", by }))
        const commit = {
          v: 1 as const,
          actor: "alice",
          at: hour(13),
          events,
          commands: ["many"],
          snapshot: { machine: 1, value: "open", context: { total: 6, due: null } },
          prev: log.hashOf("test.counter.many"),
        }
        yield* log.append([{ stream: "test.counter.many", expected: 0, commit }])
        yield* model.catchUp
        const first = yield* promised(() => page("subject=many&limit=2"))
        assert.deepEqual(
          first.events.map(({ index }) => index),
          [2, 1],
        )
        assert.equal(first.next_marker, "6.1")
        const hour_of_all = yield* promised(() => page(`from=${hour(13)}&to=${hour(14)}`))
        assert.equal(hour_of_all.events.length, 3)
        const second = yield* promised(() => page("subject=many&marker=6.1"))
        assert.deepEqual(
          second.events.map(({ index }) => index),
          [0],
        )
      }),
    ),
  )

  const malformed = [
    "limit=0",
    "limit=1001",
    "limit=-1",
    "limit=1e2",
    "limit=",
    "order=newest",
    "from=yesterday",
    "from=2026-11-20",
    "from=2026-13-40T00:00:00Z",
    "to=2026-11-20T12:00:00",
    "marker=3",
    "marker=a.b",
    "service=blob.storage",
    "type=*",
    "actor=",
    `actor=${"x".repeat(257)}`,
  ]
  it.live("answers 400 in the envelope, naming the field, to what it cannot read", () =>
    withAudit(({ get }) =>
      promised(async () => {
        for (const query of malformed) {
          const response = await get(`/v1/admin/audit?${query}`)
          assert.equal(response.status, 400, query)
          const body = (await response.json()) as { code: string; detail: string }
          assert.equal(body.code, "svc.validation_error")
          assert.include(body.detail, `query.${query.split("=")[0]}`)
        }
      }),
    ),
  )

  it.live("takes 1 and 1000 as limits", () =>
    withAudit(({ positions }) =>
      promised(async () => {
        assert.equal((await positions("limit=1")).length, 1)
        assert.equal((await positions("limit=1000")).length, 5)
      }),
    ),
  )

  it.live("is the operators' alone", () =>
    withAudit(({ fetch }) =>
      promised(async () => {
        for (const path of ["/v1/admin/audit", "/v1/admin/audit/test/counter/a"]) {
          assert.equal((await fetch(path)).status, 401)
          assert.equal((await fetch(path, { headers: as("writer") })).status, 403)
        }
      }),
    ),
  )

  it.live("equals its rebuild", () =>
    withAudit(() =>
      Effect.gen(function* () {
        const model = yield* SystemModel
        const before = yield* model.dump
        yield* model.rebuild
        assert.deepEqual(yield* model.dump, before)
        assert.equal(before.system_audit_event?.length, 5)
      }),
    ),
  )
})

const decodeHistory = Schema.decodeUnknownSync(AuditHistory)
const decodeState = Schema.decodeUnknownSync(AuditState)
const of_a = "/v1/admin/audit/test/counter/a"

describe("GET /v1/admin/audit/{service}/{aggregate}/{id}", () => {
  it.live("answers the aggregate's commits with the state after each, oldest first", () =>
    withAudit(({ get }) =>
      promised(async () => {
        const history = decodeHistory(await (await get(of_a)).json())
        assert.deepEqual(
          history.commits.map(({ position, events, snapshot }) => [
            position,
            events.length,
            snapshot.value,
          ]),
          [
            [1, 1, "open"],
            [3, 1, "open"],
            [4, 1, "closed"],
          ],
        )
        assert.equal(history.commits[1]?.prev, history.commits[0]?.hash)
        assert.isUndefined(history.next_marker)
      }),
    ),
  )

  it.live("answers a page of them, and where the next one begins", () =>
    withAudit(({ get }) =>
      promised(async () => {
        const first = decodeHistory(await (await get(`${of_a}?limit=2`)).json())
        assert.equal(first.next_marker, "3")
        const rest = await get(`${of_a}?limit=2&marker=${first.next_marker}`)
        const second = decodeHistory(await rest.json())
        assert.deepEqual(
          second.commits.map(({ position }) => position),
          [4],
        )
        assert.isUndefined(second.next_marker)
      }),
    ),
  )

  it.live("returns the state as of a position or a time", () =>
    withAudit(({ get }) =>
      promised(async () => {
        const moments = [
          ["position=1", 1, 1],
          ["position=2", 1, 1],
          ["position=3", 3, 4],
          ["position=5", 4, 4],
          [`at=${hour(8)}`, 1, 1],
          ["at=2026-11-20T10:59:59.999Z", 3, 4],
          [`at=${new Date().toISOString()}`, 4, 4],
        ] as const
        for (const [query, position, total] of moments) {
          const state = decodeState(await (await get(`${of_a}?${query}`)).json())
          assert.equal(state.position, position, query)
          assert.deepInclude(state.state.context, { total })
        }
      }),
    ),
  )

  it.live("responds 404 for an aggregate, a time and a position that do not exist yet", () =>
    withAudit(({ get }) =>
      promised(async () => {
        const paths = [
          "/v1/admin/audit/test/counter/nobody",
          "/v1/admin/audit/test/counter/nobody?position=3",
          ...["0", "6"].map((position) => `${of_a}?position=${position}`),
          ...["2026-11-20T07:59:59Z", "9999-01-01T00:00:00Z"].map((at) => `${of_a}?at=${at}`),
        ]
        for (const path of paths) {
          const response = await get(path)
          assert.equal(response.status, 404, path)
          assert.equal(((await response.json()) as { code: string }).code, "svc.not_found")
        }
      }),
    ),
  )

  it.live("answers 400 to what it cannot read", () =>
    withAudit(({ get }) =>
      promised(async () => {
        const paths = [
          `${of_a}?at=noon`,
          `${of_a}?position=-1`,
          `${of_a}?position=1&at=${hour(9)}`,
          `${of_a}?limit=1001`,
          "/v1/admin/audit/test/counter/a.b",
          "/v1/admin/audit/test/*/a",
        ]
        for (const path of paths) assert.equal((await get(path)).status, 400, path)
      }),
    ),
  )
})
