/** Scripted responses to carrier searches, with the built page. */
import type { ServerResponse } from "node:http"
import type { Range } from "#schemas/carrier-search/carrier.ts"
import { rowOf } from "#schemas/carrier-search/format.ts"
import type { Source } from "#schemas/carrier-search/source.ts"
import { canned_now } from "../canned.ts"
import { listen } from "../served.ts"

const no_source: Source = {
  registry: "none",
  is_healthy: false,
  detail: null,
  carriers: null,
  dockets: null,
  as_of: null,
  imported_at: null,
  is_demo: false,
  concurrency: null,
  last_answer_at: null,
  last_error_at: null,
  last_error: null,
}

const hours = (count: number) => new Date(canned_now.getTime() - count * 3_600_000).toISOString()

export const sources = {
  none: no_source,
  mirror: {
    ...no_source,
    registry: "mirror",
    is_healthy: true,
    carriers: 712_004,
    dockets: 2_104_332,
    as_of: "2026-11-12T00:00:00.000Z",
    imported_at: hours(3),
  },
  demo: {
    ...no_source,
    registry: "mirror",
    is_healthy: true,
    carriers: 14_000,
    dockets: 40_000,
    is_demo: true,
    as_of: hours(1),
    imported_at: hours(1),
  },
  fmcsa: {
    ...no_source,
    registry: "fmcsa",
    is_healthy: true,
    concurrency: 8,
    last_answer_at: hours(0.05),
    last_error_at: hours(2),
    last_error: "It answered 503.",
  },
  ill: {
    ...no_source,
    registry: "fmcsa",
    detail: "FMCSA refuses the web key: set another.",
  },
} satisfies Readonly<Record<string, Source>>

/** Responds to one search; ends by itself, or later when the test ends it. */
export type Answer = (response: ServerResponse, range: Range) => void

export const line = (value: object) => `${JSON.stringify(value)}\n`
export const row = (mc: number, name: string) => rowOf(mc, name, "ndjson")

const progress = (done: number, total: number, found: number) =>
  line({ progress: { done, total, found } })
export const begun = (response: ServerResponse, { start, end }: Range) => {
  response.writeHead(200, { "content-type": "application/x-ndjson" })
  response.write(progress(0, end - start + 1, 0))
}

/** Returns every carrier whose number `names` has, at once. */
export const answering =
  (names: (mc: number) => string | undefined): Answer =>
  (response, range) => {
    begun(response, range)
    const rows: string[] = []
    for (let mc = range.start; mc <= range.end; mc++) {
      const name = names(mc)
      if (name !== undefined) rows.push(row(mc, name))
    }
    const total = range.end - range.start + 1
    response.write(rows.join(""))
    response.write(progress(total, total, rows.length))
    const counts = { total, found: rows.length, duration_ms: 1234, registry: "mirror" }
    response.end(line({ summary: counts }))
  }

/** An error before the first line. */
export const refusing =
  (status: number, error: string): Answer =>
  (response) =>
    response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify({ error }))

const words = ["Northern", "Blue Ridge", "Delta", "Prairie", "Lone Star", "Summit", "Granite"]
const trades = ["Freight LLC", "Trucking Inc", "Logistics Co", "Hauling LLC", "Transport Inc"]
/** Half of all numbers have a carrier. */
export const someNames = (mc: number) =>
  mc % 2 === 0 ? undefined : `${words[mc % 7]} ${trades[mc % 5]}`

export interface CarrierServed {
  readonly origin: string
  /** The source in use. If undefined, the sources request fails with 500. */
  source: Source | undefined
  /** An additional configured source. */
  spare: Source | undefined
  answer: Answer
  /** For example, "1-500", for each requested search. */
  readonly requests: string[]
  /** Searches whose client disconnected before the end. */
  hung_up: number
  readonly close: () => Promise<void>
}

export const serveCarriers = async (): Promise<CarrierServed> => {
  const listening = await listen((request, response, url) => {
    if (url.pathname === "/api/search/sources") {
      const { source, spare } = served
      response.writeHead(source ? 200 : 500, { "content-type": "application/json" })
      response.end(
        JSON.stringify(
          source ? { sources: spare ? [source, spare] : [source] } : { error: "It broke." },
        ),
      )
      return
    }
    const [start, end] = ["start", "end"].map((name) => Number(url.searchParams.get(name)))
    served.requests.push(`${start}-${end}`)
    if (request.headers.accept !== "application/x-ndjson") {
      response.writeHead(406).end()
      return
    }
    response.once("close", () => {
      if (!response.writableEnded) served.hung_up += 1
    })
    served.answer(response, { start: start ?? 0, end: end ?? 0 })
  })
  const served: CarrierServed = {
    ...listening,
    source: sources.mirror,
    spare: undefined,
    answer: answering(someNames),
    requests: [],
    hung_up: 0,
  }
  return served
}
