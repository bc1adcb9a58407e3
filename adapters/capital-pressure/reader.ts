/**
 * Reads the dashboard's file in a thread, and keeps what was made of it for as long as it holds.
 *
 * Each request looks whether the file has changed; only then is anything made anew, once for all
 * who wait for it. Source: decisions of document 3, dashboard storage; market facts, A2.8.
 */
import { Cron } from "croner"
import { Clock, Effect, Layer } from "effect"
import { watchedFile } from "#adapters/capital-pressure/reader-file.ts"
import type { NextRuns, Question } from "#adapters/capital-pressure/reader-thread.ts"
import {
  type Asked,
  DashboardReader,
  type Shown,
} from "#gateway/capital-pressure/dashboard-reader.ts"
import { dayAt } from "#schemas/capital-pressure/day.ts"
import { Unreadable } from "#schemas/capital-pressure/rejection.ts"
import { scheduled_jobs } from "#schemas/capital-pressure/schedule.ts"
import { causeText } from "#schemas/cause-text.ts"
import { type ThreadCallOptions, threadCall } from "#threads"

export interface CapitalReaderOptions
  extends Partial<Pick<ThreadCallOptions, "program" | "response_ms_max">> {
  readonly path: string
  /** Whether the scheduler runs: without it no job has a next run. */
  readonly scheduler: boolean
}

/** A whole load and the largest answer take a fiftieth of it on a slow machine. */
const response_ms_max = 10_000
/** Every metric's history and detail of 20 years, three times over. */
const kept_bytes_max = 64 * 2 ** 20
/** Different answers that may be waited for at once: a client makes no longer queue. */
const waiting_max = 1000
const program = new URL("./reader-thread.ts", import.meta.url)
/** Measured: with V8's own 16 a load keeps 25 MB more, and is not faster. */
const resourceLimits = { maxYoungGenerationSizeMb: 8 }

/** One answer on its way, and who waits for it. */
interface Build extends PromiseWithResolvers<Shown> {
  readonly key: string
  readonly asked: Asked
  readonly next_runs: NextRuns
}

/** What was made of one state of the file on one day, the last used last. */
interface Edition {
  readonly change: number
  readonly today: number
  readonly kept: Map<string, Shown>
  bytes: number
}

/** Puts an answer last, and lets the first go where it becomes too much. */
const keep = (edition: Edition, key: string, shown: Shown) => {
  forget(edition, key)
  edition.kept.set(key, shown)
  edition.bytes += sizeOf(shown)
  for (const other of edition.kept.keys()) {
    if (edition.bytes <= kept_bytes_max) return
    forget(edition, other)
  }
}

const forget = (edition: Edition, key: string) => {
  const shown = edition.kept.get(key)
  if (shown === undefined) return
  edition.kept.delete(key)
  edition.bytes -= sizeOf(shown)
}

const sizeOf = ({ bytes, gzip }: Shown) => bytes.length + (gzip?.length ?? 0)

/** Answers are made one after the other; who asks for one that has not begun shares it. */
const reading = (options: CapitalReaderOptions) => {
  const { path } = options
  const watched = watchedFile(path, 0)
  const thread = threadCall<Question, Shown>({
    name: "The reading thread",
    program: options.program ?? program,
    workerData: path,
    resourceLimits,
    response_ms_max: options.response_ms_max ?? response_ms_max,
  })
  const waiting = new Map<string, Build>()
  let running: { readonly build: Build; readonly edition: Edition } | undefined
  let edition: Edition = { change: 0, today: 0, kept: new Map(), bytes: 0 }

  const renew = (today: number) => {
    const change = watched.look()
    if (change === edition.change && today === edition.today) return
    edition = { change, today, kept: new Map(), bytes: 0 }
  }
  const next = () => {
    const [build] = waiting.values()
    if (running !== undefined || build === undefined) return
    const { key, asked, next_runs } = build
    waiting.delete(key)
    const begun = edition
    running = { build, edition: begun }
    const { today } = begun
    thread.request({ asked, today, next_runs }).then(
      (shown) => {
        keep(begun, key, shown)
        ended()
        build.resolve(shown)
      },
      (error: unknown) => {
        ended()
        build.reject(error)
      },
    )
  }
  const ended = () => {
    running = undefined
    next()
  }
  const build = (key: string, asked: Asked, next_runs: NextRuns) => {
    if (running?.build.key === key && running.edition === edition) return running.build.promise
    const shared = waiting.get(key)
    if (shared !== undefined) return shared.promise
    if (waiting.size >= waiting_max) throw new Error("Too many answers are waited for.")
    const made: Build = { key, asked, next_runs, ...Promise.withResolvers<Shown>() }
    waiting.set(key, made)
    next()
    return made.promise
  }
  return {
    watched,
    thread,
    /** What is known, or will be. Throws where the file cannot be read. */
    shown: (asked: Asked, today: number, next_runs: NextRuns): Shown | Promise<Shown> => {
      renew(today)
      const key = JSON.stringify([asked, next_runs])
      const known = edition.kept.get(key)
      if (known === undefined) return build(key, asked, next_runs)
      // One that is used again is let go later.
      if (edition.kept.size > 1) keep(edition, key, known)
      return known
    },
  }
}

/** When each job runs next after a time in epoch milliseconds; kept until the first has run. */
const nextRuns = () => {
  const crons = scheduled_jobs.map(({ id, cron, timezone }) => ({
    id,
    cron: new Cron(cron, { mode: "5-part", timezone, paused: true }),
  }))
  let known: NextRuns = {}
  let from = Number.POSITIVE_INFINITY
  let until = Number.NEGATIVE_INFINITY
  return (now: number): NextRuns => {
    if (from <= now && now < until) return known
    const runs = crons.flatMap(({ id, cron }) => {
      const run = cron.nextRun(new Date(now))
      return run === null ? [] : [{ id, run }]
    })
    from = now
    until = Math.min(...runs.map(({ run }) => run.getTime()))
    known = Object.fromEntries(runs.map(({ id, run }) => [id, run.toISOString()]))
    return known
  }
}

const no_runs: NextRuns = {}
const internal = new Unreadable({ detail: "Internal Server Error" })

/** Reads until the layer ends; the thread starts with the first answer that has to be made. */
export const capitalReader = (options: CapitalReaderOptions) =>
  Layer.effect(
    DashboardReader,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const { watched, thread, shown } = reading(options)
      const runsAt = options.scheduler ? nextRuns() : () => no_runs
      let trouble: string | undefined
      yield* Effect.addFinalizer(() =>
        Effect.promise(async () => {
          watched.close()
          await thread.end()
        }),
      )

      /** Said once, until it is well again or something else is the matter. */
      const refused = (error: unknown) => {
        const why = causeText(error)
        const is_new = why !== trouble
        trouble = why
        const said = Effect.logError(`The dashboard's file ${options.path} cannot be read: ${why}`)
        return Effect.andThen(is_new ? said : Effect.void, Effect.fail(internal))
      }
      const made = (promise: Promise<Shown>) =>
        Effect.tryPromise({ try: () => promise, catch: (error) => error }).pipe(
          Effect.tap(() => Effect.sync(() => (trouble = undefined))),
          Effect.catch(refused),
        )
      const show = (asked: Asked) =>
        Effect.suspend(() => {
          const now = clock.currentTimeMillisUnsafe()
          const next_runs = asked.kind === "scheduler" ? runsAt(now) : no_runs
          try {
            const found = shown(asked, dayAt(now), next_runs)
            return found instanceof Promise ? made(found) : Effect.succeed(found)
          } catch (error) {
            return refused(error)
          }
        })
      return DashboardReader.of({
        show,
        trouble: show({ kind: "sources" }).pipe(
          Effect.match({
            onFailure: () => `cannot read its file: ${trouble}`,
            onSuccess: () => undefined,
          }),
        ),
      })
    }),
  )
