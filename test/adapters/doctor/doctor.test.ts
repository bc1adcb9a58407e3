import { chmodSync, mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it as plain } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Leases } from "#actors/leases.ts"
import { type BusCheckOptions, busChecks } from "#adapters/doctor/bus.ts"
import { runChecks } from "#adapters/doctor/checks.ts"
import type { Finding } from "#adapters/doctor/finding.ts"
import { machineChecks, spaceFindings } from "#adapters/doctor/machine.ts"
import { leasesJetStream } from "#adapters/leases/jetstream.ts"
import { rollLog } from "#adapters/log/roll.ts"
import { logStanding } from "#adapters/log/size-monitor.ts"
import { recordBackup } from "#adapters/state/last-backup.ts"
import { NatsConnection } from "#bus"
import { type GatewayResponse, type Get, gatewayChecks } from "#cli/doctor/gateway.ts"
import type { GenerationsOptions } from "#journal"
import type { Settings } from "#schemas/settings.ts"
import { certificate } from "../../world/certificate.ts"
import { fresh, opened, written } from "../../world/log/generation-log.ts"
import { describeNats, temporaryFolder } from "../../world/programs/nats.ts"
import { given } from "../../world/settings-given.ts"

/**
 * Findings that are not `ok`, as `fail what`. Ignores the disk of the machine that runs the tests.
 */
const complaints = (all: ReadonlyArray<Finding>) =>
  all.flatMap(({ status, what }) =>
    status === "ok" || what === "disk" ? [] : [`${status} ${what}`],
  )

const why = (all: ReadonlyArray<Finding>, what: string) =>
  all.find((one) => one.what === what && one.status !== "ok")?.why ?? ""

const now_ms = Date.UTC(2026, 10, 22)
const day_ms = 86_400_000

/** Settings for one service that needs no external program, on loopback. */
const settingsOf = (dir: string, more: Parameters<typeof given>[0] = {}): Settings => ({
  ...given({ data: { dir }, api: { bind_host: "127.0.0.1" }, ...more }),
  services: ["blob-storage"],
})

const look = (settings: Settings, at_ms = now_ms) => runChecks(machineChecks(settings, at_ms))

/** A data folder as a server leaves it, with a backup in another folder from a day ago. */
const folder = Effect.gen(function* () {
  const dir = join(yield* temporaryFolder, "data")
  mkdirSync(join(dir, "vault"), { recursive: true, mode: 0o700 })
  for (const name of ["webhook-key", "vault/key"]) {
    writeFileSync(join(dir, name), "secret", { mode: 0o600 })
  }
  const at = new Date(now_ms - day_ms).toISOString()
  yield* recordBackup(dir, { at, position: 7, to: "/elsewhere" })
  return dir
})

describe("a look at a machine", () => {
  const it = plain.effect
  it("has nothing to say of a folder that is as it should be", () =>
    Effect.gen(function* () {
      assert.deepEqual(complaints(yield* look(settingsOf(yield* folder))), [])
    }).pipe(Effect.scoped))

  it("finds what others can read, by name", () =>
    Effect.gen(function* () {
      const dir = yield* folder
      chmodSync(join(dir, "vault", "key"), 0o640)
      chmodSync(dir, 0o755)
      const found = yield* look(settingsOf(dir))
      assert.deepEqual(complaints(found), ["fail folder", "fail secrets"])
      assert.include(why(found, "secrets"), "vault/key")
    }).pipe(Effect.scoped))

  it("finds a restore that was not finished, and a backup that is old or was never made", () =>
    Effect.gen(function* () {
      const dir = yield* folder
      writeFileSync(join(dir, "restoring.json"), "{}", { mode: 0o600 })
      const at = new Date(now_ms - 8 * day_ms).toISOString()
      yield* recordBackup(dir, { at, position: 7, to: "/elsewhere" })
      assert.deepEqual(complaints(yield* look(settingsOf(dir))), ["fail folder", "warn backup"])
      yield* recordBackup(dir, { at: new Date(now_ms).toISOString(), position: 7, to: dir })
      assert.include(why(yield* look(settingsOf(dir)), "backup"), "same disk")
      rmSync(join(dir, "last-backup.json"))
      assert.include(why(yield* look(settingsOf(dir)), "backup"), "never")
    }).pipe(Effect.scoped))

  it("does not call well what it cannot look at", () =>
    Effect.gen(function* () {
      const dir = join(yield* temporaryFolder, "data")
      writeFileSync(dir, "no folder", { mode: 0o600 })
      const found = yield* look(settingsOf(dir))
      assert.deepEqual(complaints(found), ["fail secrets", "warn backup"])
      assert.include(why(found, "secrets"), "ENOTDIR")
    }).pipe(Effect.scoped))

  it("finds missing programs, and a listener without TLS", () =>
    Effect.gen(function* () {
      const dir = yield* folder
      const nats = { binary: join(dir, "absent") }
      const found = yield* look(settingsOf(dir, { nats, api: { bind_host: "0.0.0.0" } }))
      assert.deepEqual(complaints(found), ["fail program", "warn tls"])
      // An external bus needs no local program.
      const outside = { ...nats, url: "nats://127.0.0.1:1" }
      assert.deepEqual(complaints(yield* look(settingsOf(dir, { nats: outside }))), [])
    }).pipe(Effect.scoped))

  it("reports how full a disk is, and if a log is safe on it", () =>
    Effect.sync(() => {
      const problems = (gib: number, type = 61267) => {
        const found = spaceFindings("/data", { bavail: gib, blocks: 100, bsize: 1024 ** 3, type })
        return found.map(({ status, what, why: reason }) => `${status} ${what}: ${reason}`)
      }
      assert.deepEqual(problems(10), ["ok disk: 10.7 GB free of 107.4 GB in /data"])
      assert.match(problems(9)[0] ?? "", /^warn disk: 9\.7 GB free .* filling up/)
      assert.match(problems(0.5)[0] ?? "", /^fail disk: 0\.5 GB free .* free space/)
      assert.match(problems(50, 16914836)[1] ?? "", /^warn disk: .* tmpfs/)
      assert.match(problems(50, 26985)[1] ?? "", /^warn disk: .* NFS/)
    }))

  it("knows until when a certificate is good, and whether the key is its own", () =>
    Effect.gen(function* () {
      const dir = yield* folder
      const one = certificate({ folder: dir, name: "one", days: 100 })
      const other = certificate({ folder: dir, name: "other", days: 100 })
      const since = Date.now()
      const at = (tls: typeof one, ms: number) => look(settingsOf(dir, { tls }), ms)
      assert.notInclude(complaints(yield* at(one, since)).join(), "tls")
      assert.include(complaints(yield* at(one, since + 80 * day_ms)), "warn tls")
      assert.include(complaints(yield* at(one, since + 101 * day_ms)), "fail tls")
      assert.include(why(yield* at(one, since - day_ms), "tls"), "is not valid before")
      const mixed = yield* at({ ...one, key: other.key }, since)
      assert.include(why(mixed, "tls"), "is not the private key of")
      const absent = yield* at({ ...one, cert: join(dir, "absent") }, since)
      assert.include(why(absent, "tls"), "ENOENT")
    }).pipe(Effect.scoped))
})

const asks = (options: GenerationsOptions): BusCheckOptions => ({
  ...options,
  leases_bucket: "DOCTOR_LEASES",
  checkpoint_seconds: 1,
  is_running: true,
  is_outside: false,
})

const bus = (of: BusCheckOptions) =>
  Effect.provide(
    runChecks(busChecks(of)),
    logStanding({ name: of.name, store: undefined, store_bytes_max: 1 }),
    { local: true },
  )

describeNats("a look at a bus", (it) => {
  it.effect("reports version, clock, log, leases, and processes without a leader", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      yield* opened(options, written)
      const idle = yield* bus(asks(options))
      assert.deepEqual(complaints(idle), ["warn checkpoint", "warn leases"])
      assert.deepEqual(complaints(yield* bus({ ...asks(options), is_running: false })), [])
      const lease = { bucket: "DOCTOR_LEASES", holder: "node-7", ttl_ms: 5_000 }
      const held = yield* Effect.gen(function* () {
        const { hold } = yield* Leases
        const term = hold("publisher", Effect.succeed(1), () => bus(asks(options)))
        return yield* term
      }).pipe(Effect.provide(Layer.fresh(leasesJetStream(lease))))
      const reported = held.find(({ what }) => what === "leases")
      assert.include(reported?.why, "publisher")
      assert.include(reported?.why, "node-7")
      assert.deepEqual(complaints(yield* bus({ ...asks(options), is_outside: true })), [
        "warn copies",
        "warn checkpoint",
        "warn leases",
      ])
      const wished = yield* bus({ ...asks(options), replicas: 3, is_running: false })
      assert.include(complaints(wished), "warn copies")
    }).pipe(Effect.scoped),
  )

  it.effect("says where no log is, once, and what to do", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      const none = yield* bus(asks(options))
      assert.deepEqual(complaints(none), ["fail log"])
      assert.include(why(none, "log"), "restore-state")
      const first = yield* bus({ ...asks(options), is_running: false })
      assert.deepEqual(complaints(first), ["warn log"])
    }).pipe(Effect.scoped),
  )

  it.effect("finds a log that somebody changed, and a generation whose file is gone", () =>
    Effect.gen(function* () {
      const options = yield* fresh
      yield* opened(options, written)
      yield* rollLog(options)
      const { jsm } = yield* NatsConnection
      const calm = { ...asks(options), is_running: false }
      assert.deepEqual(complaints(yield* bus(calm)), [])
      const archive = join(options.folder, "generation-1.json")
      const cut = join(options.folder, "generation-1.ndjson.gz")
      truncateSync(cut, statSync(cut).size - 1)
      assert.include(why(yield* bus(calm), "log"), "Generation 1 of the log is not in")
      rmSync(archive)
      const missing = yield* bus(calm)
      assert.include(why(missing, "log"), "Generation 1 of the log is not in")
      const stream = `${options.name}_2`
      yield* Effect.promise(() => jsm.streams.update(stream, { max_msgs: 1_000_000 }))
      assert.include(why(yield* bus(calm), "log"), "has wrong settings: max_msgs")
    }).pipe(Effect.scoped),
  )
})

const gatewayFindings = (get: Get) => Effect.runPromise(runChecks(gatewayChecks(get, true)))

/** A gateway with these responses. */
const answering =
  (answers: Readonly<Record<string, unknown>>) =>
  async (path: string): Promise<GatewayResponse> => {
    const found = answers[path]
    if (typeof found === "number") return { status: found, text: "" }
    if (typeof found === "string") return { status: 200, text: found }
    return { status: found === undefined ? 404 : 200, text: JSON.stringify(found) }
  }

describe("a look at a gateway", () => {
  const it = plain
  const of = async (answers: Readonly<Record<string, unknown>>) =>
    await gatewayFindings(answering(answers))

  it("reports failures, backlogs, and offline or unready parts", async () => {
    const model = { name: "system", position: 9 }
    const found = await of({
      "/readyz":
        "blob-storage ok\ncarrier-search ok; searches fail\nplant-disease does not respond\n",
      "/v1/admin/read-models": { read_models: [{ ...model, behind: 1001 }] },
      "/v1/webhooks?limit=100": {
        webhooks: [
          { id: "one", state: "active" },
          { id: "two", state: "disabled" },
          { id: "three", state: "paused" },
        ],
      },
      "/v1/webhooks/one": { delivery: { failing_since: "2026-11-22T00:00:00Z" } },
      "/v1/cluster/state": { nodes: [{ node_id: "n-1", state: "offline" }], ring_version: 3 },
    })
    assert.deepEqual(complaints(found), [
      "warn ready",
      "fail ready",
      "warn read model",
      "warn webhooks",
      "warn blob nodes",
    ])
    const failing = "one has been failing since 2026-11-22T00:00:00Z, two is disabled"
    assert.include(why(found, "webhooks"), failing)
  })

  it("asks once more whom it caught at a service's first question", async () => {
    const result = ["capital-pressure does not respond\n", "capital-pressure ok\n"]
    const get = async (path: string) =>
      path === "/readyz" ? { status: 200, text: result.shift() ?? "" } : { status: 404, text: "" }
    assert.deepEqual(complaints(await gatewayFindings(get)), [])
    assert.deepEqual(result, [])
  })

  it("says what a token may not see, and is silent of what is not served", async () => {
    const found = await of({
      "/readyz": "operations ok\n",
      "/v1/admin/read-models": 403,
      "/v1/admin/log": 401,
      "/v1/webhooks?limit=100": 500,
    })
    assert.deepEqual(complaints(found), ["warn read models", "warn log size", "fail webhooks"])
  })

  it("says that a log is almost full, and which webhooks it could not look at", async () => {
    const figures = {
      position: 9,
      generation: 1,
      aggregates: 1,
      bytes: 90,
      limit_bytes: 100,
      used_share: 0.9,
    }
    const many = Array.from({ length: 100 }, (_, i) => ({ id: `w-${i}`, state: "paused" }))
    const found = await of({
      "/readyz": "operations ok\n",
      "/v1/admin/log": figures,
      "/v1/webhooks?limit=100": { webhooks: [{ id: "one", state: "active" }] },
      "/v1/webhooks/one": 500,
    })
    assert.deepEqual(complaints(found), ["warn log size", "warn webhooks"])
    assert.include(why(found, "log size"), "almanac log roll")
    assert.include(why(found, "webhooks"), "one responds with 500")
    const cut = await of({ "/readyz": "x ok\n", "/v1/webhooks?limit=100": { webhooks: many } })
    assert.include(cut.find(({ what }) => what === "webhooks")?.why, "the first 100")
  })

  it("fails if the gateway does not respond", async () => {
    const found = await gatewayFindings(() => Promise.reject(new Error("refused")))
    assert.deepEqual(complaints(found), ["fail gateway"])
  })
})
