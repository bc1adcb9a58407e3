/**
 * Reads the dashboard's database in a thread and caches responses until it changes.
 *
 * Each request checks whether the file has changed. Concurrent requests for the same response share
 * one computation. Source: decisions of document 3, dashboard storage; market facts, A2.8.
 */
import { Cron } from "croner"
import { Clock, Effect, Layer } from "effect"
import { watchedFile } from "#adapters/capital-pressure/reader-file.ts"
import type { NextRuns, PageRequest } from "#adapters/capital-pressure/reader-thread.ts"
import {
  type DashboardQuery,
  DashboardReader,
  type EncodedPage,
} from "#gateway/capital-pressure/dashboard-reader.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"
import { Unreadable } from "#schemas/capital-pressure/rejection.ts"
import { scheduled_jobs } from "#schemas/capital-pressure/schedule.ts"
import { causeText } from "#schemas/cause-text.ts"
import { type ThreadCallOptions, threadCall } from "#threads"

export interface CapitalReaderOptions
  extends Partial<Pick<ThreadCallOptions, "program" | "response_ms_max">> {
  readonly path: string
  /** Whether the scheduler runs; otherwise no job has a next run. */
  readonly scheduler: boolean
}

/** Loading the file and the largest response take a fiftieth of this on a slow machine. */
const response_ms_max = 10_000
/** Three times the history and detail of all metrics over 20 years. */
const cache_bytes_max = 64 * 2 ** 20
/** The limit on queued computations, so that clients cannot grow the queue. */
const queue_max = 1000
const program = new URL("./reader-thread.ts", import.meta.url)

/** A queued or running computation. */
interface Computation extends PromiseWithResolvers<EncodedPage> {
  readonly key: string
  readonly query: DashboardQuery
  readonly next_runs: NextRuns
}

/** The cache for one state of the file on one day, least recently used first. */
interface Cache {
  readonly change: number
  readonly today: number
  readonly responses: Map<string, EncodedPage>
  bytes: number
}

/** Caches a response as the most recently used, and evicts the oldest beyond the limit. */
const store = (cache: Cache, key: string, page: EncodedPage) => {
  evict(cache, key)
  cache.responses.set(key, page)
  cache.bytes += sizeOf(page)
  for (const other of cache.responses.keys()) {
    if (cache.bytes <= cache_bytes_max) return
    evict(cache, other)
  }
}

const evict = (cache: Cache, key: string) => {
  const cached = cache.responses.get(key)
  if (cached === undefined) return
  cache.responses.delete(key)
  cache.bytes -= sizeOf(cached)
}

const sizeOf = ({ bytes, gzip }: EncodedPage) => bytes.length + (gzip?.length ?? 0)

const startThread = (options: CapitalReaderOptions) =>
  threadCall<PageRequest, EncodedPage>({
    name: "The reader thread",
    program: options.program ?? program,
    workerData: options.path,
    response_ms_max: options.response_ms_max ?? response_ms_max,
  })

/** Computes one response at a time. Requests for a queued response share it. */
const cachedReader = (options: CapitalReaderOptions) => {
  const watched = watchedFile(options.path, 0)
  const thread = startThread(options)
  const queue = new Map<string, Computation>()
  let running: { readonly computation: Computation; readonly cache: Cache } | undefined
  let cache: Cache = { change: 0, today: 0, responses: new Map(), bytes: 0 }

  const refresh = (today: number) => {
    const change = watched.changeCount()
    if (change === cache.change && today === cache.today) return
    cache = { change, today, responses: new Map(), bytes: 0 }
  }
  const next = () => {
    const [computation] = queue.values()
    if (running !== undefined || computation === undefined) return
    const { key, query, next_runs } = computation
    queue.delete(key)
    const started = cache
    running = { computation, cache: started }
    const { today } = started
    thread.request({ query, today, next_runs }).then(
      (response) => {
        store(started, key, response)
        finish()
        computation.resolve(response)
      },
      (error: unknown) => {
        finish()
        computation.reject(error)
      },
    )
  }
  const finish = () => {
    running = undefined
    next()
  }
  const compute = (key: string, query: DashboardQuery, next_runs: NextRuns) => {
    if (running?.computation.key === key && running.cache === cache)
      return running.computation.promise
    const queued = queue.get(key)
    if (queued !== undefined) return queued.promise
    if (queue.size >= queue_max) throw new Error("Too many responses are queued.")
    const computation: Computation = {
      key,
      query,
      next_runs,
      ...Promise.withResolvers<EncodedPage>(),
    }
    queue.set(key, computation)
    next()
    return computation.promise
  }
  return {
    watched,
    thread,
    /** Returns a cached or future response. Throws if the file cannot be read. */
    page: (
      query: DashboardQuery,
      today: number,
      next_runs: NextRuns,
    ): EncodedPage | Promise<EncodedPage> => {
      refresh(today)
      const key = JSON.stringify([query, next_runs])
      const cached = cache.responses.get(key)
      if (cached === undefined) return compute(key, query, next_runs)
      // Move it to the end of the LRU order.
      if (cache.responses.size > 1) store(cache, key, cached)
      return cached
    },
  }
}

/** The next run of each job after a time in epoch milliseconds. Cached until the earliest run. */
const nextRuns = () => {
  const crons = scheduled_jobs.map(({ id, cron, timezone }) => ({
    id,
    cron: new Cron(cron, { mode: "5-part", timezone, paused: true }),
  }))
  let cached: NextRuns = {}
  let from = Number.POSITIVE_INFINITY
  let until = Number.NEGATIVE_INFINITY
  return (now: number): NextRuns => {
    if (from <= now && now < until) return cached
    const runs = crons.flatMap(({ id, cron }) => {
      const run = cron.nextRun(new Date(now))
      return run === null ? [] : [{ id, run }]
    })
    from = now
    until = Math.min(...runs.map(({ run }) => run.getTime()))
    cached = Object.fromEntries(runs.map(({ id, run }) => [id, run.toISOString()]))
    return cached
  }
}

const no_runs: NextRuns = {}
const internal = new Unreadable({ detail: "Internal Server Error" })

/** The reader as a layer. Its thread starts with the first computation. */
export const capitalReader = (options: CapitalReaderOptions) =>
  Layer.effect(
    DashboardReader,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const { watched, thread, page } = cachedReader(options)
      const runsAt = options.scheduler ? nextRuns() : () => no_runs
      let last_error: string | undefined
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          watched.close()
          await thread.end()
        }),
      )

      /** Logs an error once until it is resolved or changes. */
      const fail = (error: unknown) => {
        const reason = causeText(error)
        const is_new = reason !== last_error
        last_error = reason
        const log = Effect.logError(
          `The dashboard's file ${options.path} cannot be read: ${reason}`,
        )
        return Effect.andThen(is_new ? log : Effect.void, Effect.fail(internal))
      }
      const awaitResponse = (promise: Promise<EncodedPage>) =>
        Effect.tryPromise({ try: () => promise, catch: (error) => error }).pipe(
          Effect.tap(() => Effect.sync(() => (last_error = undefined))),
          Effect.catch(fail),
        )
      const show = (query: DashboardQuery) =>
        Effect.suspend(() => {
          const now = clock.currentTimeMillisUnsafe()
          const next_runs = query.kind === "scheduler" ? runsAt(now) : no_runs
          try {
            const found = page(query, dayAt(now), next_runs)
            return found instanceof Promise ? awaitResponse(found) : Effect.succeed(found)
          } catch (error) {
            return fail(error)
          }
        })
      return DashboardReader.of({
        read: show,
        problem: show({ kind: "sources" }).pipe(
          Effect.match({
            onFailure: () => `cannot read its file: ${last_error}`,
            onSuccess: () => undefined,
          }),
        ),
      })
    }),
  )
