/** Values imported from a file: when fetched again, the publisher's value wins. */
import { mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import type { Feeds } from "#actors/capital-pressure/feeds.ts"
import { Commands } from "#actors/commands.ts"
import { feedsFile } from "#adapters/capital-pressure/feeds-file.ts"
import { feedsHttp } from "#adapters/capital-pressure/feeds-http.ts"
import { waitForFile } from "#cli/dashboard/dashboard-file.ts"
import { runIngest } from "#cli/dashboard/ingest-run.ts"
import { tempFolder } from "../../world/capital-pressure/feed-given.ts"
import { metricsOf, rows, wanted, world } from "../../world/capital-pressure/ingested.ts"
import { optionsAt, publisher } from "../../world/capital-pressure/publisher.ts"

const published = "2024-01-03,1"

/** FRED with one value of NFCI under an ETag, and files with a different value. */
const given = Effect.gen(function* () {
  const fake = yield* publisher()
  const responses = { rows: published }
  fake.instead = ({ headers }, response) => {
    const etag = `"${responses.rows}"`
    if (headers["if-none-match"] === etag) response.writeHead(304).end()
    else response.writeHead(200, { etag }).end(`observation_date,NFCI\n${responses.rows}\n`)
    return true
  }
  const [answers, files] = [yield* tempFolder, yield* tempFolder]
  yield* Effect.promise(() => writeFile(join(files, "nfci.csv"), "date,value\n2024-01-03,9\n"))
  return {
    answers,
    responses,
    http: feedsHttp(optionsAt(fake.url, answers)),
    file: feedsFile(files, answers),
  }
})

/** Ingests NFCI, waits until the dashboard's file shows it, and returns the result. */
const ingest = Effect.fnUntraced(function* (feeds: Layer.Layer<Feeds>) {
  const request = wanted({ metrics: metricsOf("nfci") })
  const { feeds: reports, position } = yield* runIngest(request, () => Effect.void).pipe(
    Effect.provide(feeds),
  )
  yield* waitForFile(position)
  return reports[0]
})

const value = Effect.map(rows("select value from capital_observation"), ([row]) => row)

/** Runs `work` on a log that fails right before or right after a write, as if the process died. */
const killed = <A, E, R>(when: "before" | "after", work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const commands = yield* Commands
    const send: (typeof commands)["send"] = (...args) =>
      (when === "before" ? Effect.void : Effect.asVoid(commands.send(...args))).pipe(
        Effect.andThen(Effect.die("killed")),
      )
    const dying = Commands.of({ ...commands, send })
    const ended = yield* Effect.exit(Effect.provideService(work, Commands, dying))
    assert.isTrue(Exit.isFailure(ended))
  })

describe("a value that a file overwrote", () => {
  it.live("is the publisher's again once it is asked again", () =>
    Effect.gen(function* () {
      const { http, file } = yield* given
      yield* ingest(http)
      assert.deepInclude(yield* ingest(http), { is_unchanged: true })
      assert.deepInclude(yield* ingest(file), { revised: 1 })
      assert.deepEqual(yield* value, { value: 9 })
      assert.deepInclude(yield* ingest(http), { is_unchanged: false, revised: 1 })
      assert.deepEqual(yield* value, { value: 1 })
      assert.deepInclude(yield* ingest(http), { is_unchanged: true })
    }).pipe(Effect.provide(world)),
  )

  for (const when of ["before", "after"] as const) {
    it.live(`is so too where its ingest was killed right ${when} it was stored`, () =>
      Effect.gen(function* () {
        const { http, file } = yield* given
        yield* ingest(http)
        yield* killed(when, ingest(file))
        const revised = when === "before" ? 0 : 1
        assert.deepInclude(yield* ingest(http), { is_unchanged: false, revised })
        assert.deepEqual(yield* value, { value: 1 })
      }).pipe(Effect.provide(world)),
    )
  }

  it.live("is not stored where the publisher's answer cannot be forgotten", () =>
    Effect.gen(function* () {
      const { http, file, answers } = yield* given
      yield* ingest(http)
      yield* ingest(file)
      assert.deepEqual(yield* Effect.promise(() => readdir(answers)), [])
      yield* Effect.promise(() => mkdir(join(answers, "nfci.json")))
      const failed = yield* ingest(http)
      assert(failed?.outcome === "failed")
      assert.match(failed.detail, /nfci\.json cannot be removed \(\w+\)\. Delete it and ingest/)
      assert.deepEqual(yield* value, { value: 9 })
    }).pipe(Effect.provide(world)),
  )
})

describe("a publisher that returns to an earlier response", () => {
  it.live("is believed, also where the ingest between was killed right after it was stored", () =>
    Effect.gen(function* () {
      const { http, responses } = yield* given
      yield* ingest(http)
      responses.rows = "2024-01-03,2"
      yield* killed("after", ingest(http))
      responses.rows = published
      assert.deepInclude(yield* ingest(http), { is_unchanged: false, revised: 1 })
      assert.deepEqual(yield* value, { value: 1 })
    }).pipe(Effect.provide(world)),
  )
})
