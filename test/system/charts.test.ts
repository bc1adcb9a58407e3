/** `GET /v1/admin/charts`: access control, and an accurate description of the charts. */
import { Context, Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { and, setup } from "xstate"
import { chartData } from "#actors/chart.ts"
import { appOf } from "#gateway/routes.ts"
import { ChartsGroup } from "#gateway/system/apis/operations.ts"
import { Charts, listCharts } from "#gateway/system/operations.ts"
import { ChartList } from "#schemas/system/chart.ts"
import { charts } from "#server/charts.ts"
import { charts as machines } from "../docs/lifecycles-page.ts"
import { as, type Served, startHttp } from "../world/http.ts"

const Api = HttpApi.make("system").add(ChartsGroup)
const handlers = HttpApiBuilder.group(Api, "charts", (group) =>
  group.handle("list", () => listCharts),
)

describe("GET /v1/admin/charts", () => {
  let served: Served & { readonly stop: () => Promise<void> }
  beforeAll(async () => {
    const layer = HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))
    const routes = appOf(layer, Context.make(Charts, charts))
    served = await startHttp([{ name: "system", api: Api, routes, waitFor: () => Effect.void }])
  })
  afterAll(() => served.stop())

  const get = (headers = {}) => served.fetch("/v1/admin/charts", { headers })

  it("is for operators only", async () => {
    expect((await get()).status).toBe(401)
    for (const token of ["reader", "writer", "member", "owner", "stranger"]) {
      expect([token, (await get(as(token))).status]).toEqual([token, 403])
    }
  })

  it("returns every chart, sorted by id", async () => {
    const answer = await get(as("admin"))
    expect(answer.status).toBe(200)
    const { charts: response } = Schema.decodeUnknownSync(ChartList)(await answer.json())
    expect(response).toEqual(charts())
    expect(response.map(({ id }) => id)).toEqual([...(await machines()).keys()].toSorted())
    // Each state except initial states and regions has a sentence, as in docs/lifecycles.md.
    const silent = response.flatMap(({ id, states }) =>
      states
        .filter(
          ({ name, description, kind }) =>
            description === null && name !== "absent" && kind !== "compound",
        )
        .map(({ path }) => `${id} ${path}`),
    )
    expect(silent).toEqual([])
  })
})

describe("a chart as data", () => {
  const machine = setup({ guards: { a: () => true, b: () => true } }).createMachine({
    id: "s.thing",
    initial: "absent",
    states: {
      absent: { on: { Made: "two" } },
      two: {
        type: "parallel",
        on: { Seen: { actions: [] }, Ended: { target: "gone", guard: and(["a", "b"]) } },
        states: {
          left: { initial: "x", states: { x: { on: { Moved: "y" } }, y: {} } },
          right: { initial: "z", states: { z: {} } },
        },
      },
      gone: { type: "final" },
    },
  })
  it("has its states with paths and initial states, and its transitions", () => {
    const words = { description: "A thing.", states: { gone: "It is gone." } }
    const { id, description, kind, states, transitions } = chartData(machine, words)
    expect([id, description, kind]).toEqual(["s.thing", "A thing.", "compound"])
    expect(states.map(({ path, parent, kind }) => `${path} in ${parent || "it"}: ${kind}`)).toEqual(
      [
        "absent in it: atomic",
        "two in it: parallel",
        "two.left in two: compound",
        "two.left.x in two.left: atomic",
        "two.left.y in two.left: atomic",
        "two.right in two: compound",
        "two.right.z in two.right: atomic",
        "gone in it: final",
      ],
    )
    expect(states.filter((one) => one.is_initial).map(({ path }) => path)).toEqual([
      "absent",
      "two.left.x",
      "two.right.z",
    ])
    expect(states.at(-1)?.description).toBe("It is gone.")
    expect(transitions).toEqual([
      { from: "absent", to: "two", event: "Made", guard: "" },
      { from: "two", to: null, event: "Seen", guard: "" },
      { from: "two", to: "gone", event: "Ended", guard: "a and b" },
      { from: "two.left.x", to: "two.left.y", event: "Moved", guard: "" },
    ])
  })
})
