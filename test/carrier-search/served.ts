/** Carrier search behind the gateway, over real HTTP, with a scripted registry. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type Piece, type Registry, SearchFailed } from "#actors/carrier-search/registry.ts"
import { SearchSpool } from "#actors/carrier-search/search-spool.ts"
import {
  type AnswerBufferOptions,
  answerBufferFile,
} from "#adapters/carrier-search/response-buffer-file.ts"
import { spoolMemory } from "#adapters/spool/memory.ts"
import { CarrierSearchApi } from "#gateway/carrier-search/api.ts"
import { NoRegistry, Registries } from "#gateway/carrier-search/registries.ts"
import { searching } from "#gateway/carrier-search/search.ts"
import { appOf } from "#gateway/routes.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import { type Format, rowOf } from "#schemas/carrier-search/format.ts"
import type { SearchFact } from "#schemas/carrier-search/search.ts"
import type { Source } from "#schemas/carrier-search/source.ts"
import { type Given, type Served, startHttp } from "../world/http.ts"

/** The registry's behaviour; tests change it between requests. */
export interface Script {
  /** Names of the carriers of a number. */
  namesOf: (mc: number) => ReadonlyArray<string>
  /** Numbers per piece. */
  piece: number
  /** The fault occurs before the piece with this number. */
  at: number | undefined
  trouble: "fail" | "hang" | "die" | "end"
  /** Delay before each piece. */
  pace_ms: number
  /** Why no registry is available. */
  none: string | undefined
}

/** Every third number has a carrier. */
export const plain: Script = {
  namesOf: (mc) => (mc % 3 === 0 ? [`CARRIER ${mc}`] : []),
  piece: 100,
  at: undefined,
  trouble: "fail",
  pace_ms: 0,
  none: undefined,
}

export const key_error = new SearchFailed({ failed: 1, first: 7, reason: "the web key is refused" })

const source: Source = {
  registry: "fmcsa",
  is_healthy: true,
  detail: null,
  carriers: null,
  dockets: null,
  as_of: null,
  imported_at: null,
  is_demo: false,
  concurrency: 8,
  last_answer_at: "2026-11-22T07:00:00.000Z",
  last_error_at: null,
  last_error: null,
}

/** Number of searches started in the registry, and of those still running. */
interface Counts {
  requests: number
  running: number
}

const registryOf = (script: Script, counts: Counts): Registry["Service"] => {
  const utf8 = new TextEncoder()
  const pieceOf = (range: Range, from: number, found: number, format: Format) => {
    let rows = ""
    let all = found
    const to = Math.min(range.end, from + script.piece - 1)
    for (let mc = from; mc <= to; mc++) {
      for (const name of script.namesOf(mc)) {
        rows += rowOf(mc, name, format)
        all++
      }
    }
    return { done: to - range.start + 1, found: all, rows: utf8.encode(rows) } satisfies Piece
  }
  const trouble = () => {
    if (script.trouble === "hang") return Effect.never
    return script.trouble === "die"
      ? Effect.die(new Error("the secret cause"))
      : Effect.fail(key_error)
  }
  return {
    source: Effect.succeed(source),
    search: (range, format) => {
      counts.requests++
      counts.running++
      return Stream.unfold({ done: 0, found: 0 }, ({ done, found }) =>
        Effect.gen(function* () {
          if (done >= total(range)) return undefined
          if (script.pace_ms > 0) yield* Effect.sleep(script.pace_ms)
          const from = range.start + done
          const is_there = script.at !== undefined && from + script.piece > script.at
          if (is_there && script.trouble === "end") return undefined
          if (is_there) yield* trouble()
          const piece = pieceOf(range, from, found, format)
          return [piece, { done: piece.done, found: piece.found }] as const
        }),
      ).pipe(Stream.ensuring(Effect.sync(() => counts.running--)))
    },
  }
}

export interface Searched extends Served {
  readonly script: Script
  readonly counts: Counts
  /** The facts since the last call. */
  readonly facts: () => Promise<ReadonlyArray<SearchFact>>
  /** The folder for responses that are too large for memory. */
  readonly folder: string
  readonly stop: () => Promise<void>
}

/** Serves a registry that follows `script`. */
export const startSearch = async (
  settings: Given & { readonly carrier?: { readonly max_range?: number } } = {},
  buffer: Omit<AnswerBufferOptions, "dir"> = {},
): Promise<Searched> => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-search-"))
  const script = { ...plain }
  const counts = { requests: 0, running: 0 }
  const registry = registryOf(script, counts)
  const spool = await Effect.runPromise(spoolMemory<SearchFact>())
  const registries = Registries.of({
    in_use: Effect.suspend(() =>
      script.none === undefined
        ? Effect.succeed({ name: "fmcsa" as const, registry })
        : Effect.fail(new NoRegistry({ detail: script.none })),
    ),
    sources: Effect.map(registry.source, (source) => [source]),
  })
  const known = Effect.gen(function* () {
    const built = yield* Layer.build(answerBufferFile({ ...buffer, dir: folder }))
    return built.pipe(Context.add(Registries, registries), Context.add(SearchSpool, spool))
  })
  const layer = HttpApiBuilder.layer(CarrierSearchApi).pipe(
    Layer.provide(searching(settings.carrier?.max_range ?? 1_000_000)),
  )
  const service = {
    name: "carrier-search",
    api: CarrierSearchApi,
    routes: Effect.flatMap(known, (context) => appOf(layer, context)),
  }
  const served = await startHttp([service], { settings })
  const facts = Effect.gen(function* () {
    const all = yield* spool.scan(0, 100_000)
    yield* spool.acknowledge(all.at(-1)?.cursor ?? 0)
    return all.map(({ fact }) => fact)
  })
  return {
    ...served,
    script,
    counts,
    folder,
    facts: () => Effect.runPromise(facts),
    stop: async () => {
      await served.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
