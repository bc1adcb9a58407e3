/**
 * `node test/upgrade/renew.ts`: runs the release that `previous.ts` names with all five services,
 * and stores its log, read models and event schemas as test data for later releases. Run it once
 * per release; it needs the repository's history and the test dependencies.
 */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { logJetStream } from "#journal"
import { startRegistry } from "../carrier-search/registry-fake.ts"
import { testRadosgw } from "../world/programs/radosgw.ts"
import { connect } from "../world/server/client.ts"
import { caughtUp, dumpReadModels } from "../world/server/read-models.ts"
import { cleanUp, newFolder, runVerb, type Server, startServer } from "../world/server/server.ts"
import { enroll, shareFolder, tenantOf } from "../world/server/share-tenant.ts"
import { type Line, type Schemas, writeFixture } from "./fixture.ts"
import { takeOut } from "./previous.ts"
import { workOn, workPlan, workSettings } from "./work.ts"

const start_ms_max = 120_000
/** The stream of a log's first generation. */
const log_stream = "ALMANAC_LOG"
/** One metric with weekly values: all metrics would be ten megabytes of log. */
const metric = "nfci"
const weeks = 30
const first_day = Date.UTC(2026, 0, 2)
const week_ms = 7 * 86_400_000

const metricFile = () => {
  const rows = Array.from({ length: weeks }, (_, week) => {
    const day = new Date(first_day + week * week_ms).toISOString().slice(0, 10)
    return `${day},${(Math.sin(week) - 0.5).toFixed(3)}`
  })
  return ["date,value", ...rows, ""].join("\n")
}

/** A share that is backed up, manually and by a policy, and restored. */
const backUp = Effect.fnUntraced(function* (server: Server) {
  const bucket = yield* (yield* testRadosgw).bucket()
  yield* Effect.promise(async () => {
    const tenant = tenantOf(server)
    const { share_id } = server.credentials.tenant
    const folder = shareFolder(server, tenant, share_id)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "file.txt"), "kept")
    const target_id = await enroll(server, tenant, bucket)
    const policy = { name: "nightly", share_id, target_id, schedule: "0 3 * * *" }
    await tenant.request("POST", "/v1/policies", { ...policy, retention: { keep_last: 3 } })
    const { backup } = await tenant.made("/v1/backups", { share_id, target_id })
    await tenant.available(`/v1/backups/${backup?.id}`)
    const body = { backup_id: backup?.id, mode: "new_share" }
    const { restore } = await tenant.made("/v1/restores", body)
    await tenant.available(`/v1/restores/${restore?.id}`)
    tenant.close()
  })
})

/** Every commit of the log in this folder, which no other process has open. */
const readAll = (data_dir: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    return yield* Stream.runCollect(log.read(""))
  }).pipe(
    Effect.provide(
      logJetStream({ stream: log_stream }).pipe(
        Layer.provide(NatsConnection.layer),
        Layer.provide(ownServerLayer()),
        Layer.provide(DataFolder.layer(data_dir)),
      ),
    ),
  )

/** The event schemas of that release, for its log and its subscribers. */
const schemasOf = (place: string): Schemas => {
  const script = "previous-schemas.mjs"
  copyFileSync(join(import.meta.dirname, script), join(place, script))
  const result = execFileSync(process.execPath, [script], { cwd: place }).toString()
  const published = readFileSync(join(place, "docs/events.schema.json"), "utf8")
  return { ...JSON.parse(result), published: JSON.parse(published) }
}

const renew = Effect.gen(function* () {
  const place = yield* Effect.acquireRelease(Effect.sync(takeOut), (folder) =>
    Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  )
  const registry = yield* Effect.acquireRelease(
    Effect.promise(() => startRegistry(workPlan)),
    ({ stop }) => Effect.promise(stop),
  )
  const data_dir = newFolder()
  const settings = workSettings(registry.fake)
  const server = yield* Effect.promise(() => startServer(data_dir, settings, start_ms_max, place))
  for (const round of [1, 2]) yield* Effect.promise(() => workOn(server, round))
  const csv = newFolder()
  writeFileSync(join(csv, `${metric}.csv`), metricFile())
  const args = ["ingest", "--metric", metric, "--source", `file:${csv}`]
  const { code, stderr } = yield* Effect.promise(() => runVerb(data_dir, args, settings, place))
  assert.equal(code, 0, stderr)
  yield* backUp(server)
  const admin = connect(server.url, server.credentials.admin.token)
  yield* Effect.promise(() => caughtUp(admin))
  admin.close()
  yield* Effect.promise(() => server.stop())
  const expected = dumpReadModels(data_dir)
  const recorded = yield* readAll(data_dir)
  const lines = recorded.map(({ position, stream, hash, commit }): Line => {
    return { position, stream, hash, commit }
  })
  writeFixture(lines, expected, schemasOf(place))
  console.log(`${lines.length} commits of ${new Set(lines.map(({ stream }) => stream)).size} kinds`)
})

try {
  await Effect.runPromise(Effect.scoped(renew))
} finally {
  await cleanUp()
}
