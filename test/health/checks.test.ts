/** The checks of `almanac doctor`, each on its own, against the server's metrics and settings. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { parse } from "yaml"
import { type Check, promiseCheck, runChecks, selectChecks } from "#adapters/doctor/checks.ts"
import { type Finding, ok } from "#adapters/doctor/finding.ts"
import {
  compareSettings,
  exportSettings,
  RunningSettings,
} from "#adapters/health/running-settings.ts"
import { type Get, gatewayChecks } from "#cli/doctor/gateway.ts"
import { metric_checks } from "#cli/doctor/metric-checks.ts"
import { full_share, lag_s_max, retained_s_min } from "#schemas/health-limits.ts"
import { familyText } from "#schemas/metric.ts"
import { version } from "#server/program.ts"
import { given } from "../world/settings-given.ts"

const lines = (all: ReadonlyArray<Finding>) =>
  all.map(({ status, what, why }) => `${status} ${what}: ${why}`)

const well = (name: string) => promiseCheck(name, async () => ok(name, "well"))

describe("checks", () => {
  it.effect("do not affect each other, however one fails", () =>
    Effect.gen(function* () {
      const checks: ReadonlyArray<Check> = [
        well("first"),
        promiseCheck("rejects", () => Promise.reject(new Error("no route"))),
        { name: "fails", run: Effect.fail({ detail: "The log is offline." }) },
        { name: "dies", run: Effect.die(new Error("a defect")) },
        { name: "throws-at-once", run: Effect.suspend(() => assert.fail("at once")) },
        { name: "hangs", run: Effect.never },
        well("last"),
      ]
      const running = yield* Effect.forkChild(runChecks(checks))
      // The checks before the hanging one complete through promises.
      while (running.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust("5 seconds")
      }
      assert.deepEqual(lines(yield* Fiber.join(running)), [
        "ok first: well",
        "fail rejects: no route",
        "fail fails: The log is offline.",
        "fail dies: a defect",
        "fail throws at once: at once",
        "fail hangs: It does not respond within 20 s.",
        "ok last: well",
      ])
    }),
  )

  it("run alone by name, with those that they need", () => {
    const names = (...only: ReadonlyArray<string>) =>
      selectChecks(
        [well("a"), { ...well("b"), needs: "a" }, { ...well("c"), needs: "b" }],
        only,
      ).map(({ name }) => name)
    assert.deepEqual(names(), ["a", "b", "c"])
    assert.deepEqual(names("c"), ["a", "b", "c"])
    assert.deepEqual(names("a"), ["a"])
  })

  it("of a gateway go on where one of its paths does not answer", async () => {
    const get: Get = async (path) => {
      if (path === "/v1/admin/read-models") throw new Error("The socket was closed.")
      const text = path === "/readyz" ? "operations ok\n" : ""
      return { status: text === "" ? 404 : 200, text }
    }
    const found = lines(await Effect.runPromise(runChecks(gatewayChecks(get, true))))
    assert.deepEqual(found, ["ok ready: operations ok", "fail read models: The socket was closed."])
  })
})

const one = (name: string, value: number, labels = {}) =>
  familyText({ name: `almanac_${name}`, type: "gauge", help: "Help." }, [[value, labels]])

const found = (name: string, ...families: ReadonlyArray<string>) =>
  (metric_checks[name]?.(families.join("")) ?? []).map(
    ({ status, why }) => `${status} ${why.split(":")[0]}`,
  )

describe("what doctor reads out of a server's metrics", () => {
  it("is the lag of the publisher and of webhooks", () => {
    assert.deepEqual(found("publisher", one("publisher_lag_seconds", 0)), [
      "ok every commit is published",
    ])
    assert.deepEqual(found("publisher", one("publisher_lag_seconds", 61)), [
      "warn the oldest unpublished commit is 61 seconds old",
    ])
    assert.match(found("publisher")[0] ?? "", /^ok another process publishes/)
    const late = one("webhook_lag_seconds", 7200, { webhook: "w-1" })
    assert.deepEqual(found("webhook-lag", late), ["warn w-1 is 2 hours behind"])
    assert.deepEqual(found("webhook-lag"), [])
  })

  it("is which durable subscribers are beyond what is kept, or soon will be", () => {
    const consumer = 'a "quoted" name'
    const known = one("subscribers", 2)
    assert.match(found("subscribers")[0] ?? "", /^warn .* cannot be listed/)
    assert.match(found("subscribers", known)[0] ?? "", /^ok 2 durable consumers/)
    const beyond = one("subscriber_missed_events", 12, { consumer })
    const late = one("subscriber_lag_seconds", 3 * 86_400, { consumer })
    const [missed = "", lag = ""] = found("subscribers", known, beyond, late)
    assert.include(missed, `fail ${consumer} missed up to 12 events`)
    assert.include(lag, `warn ${consumer} is 3 days behind`)
  })

  it("is what is stored of the published events", () => {
    const stored = (bytes: number, oldest_s: number) =>
      found(
        "events",
        one("published_stream_bytes", bytes, { stream: "events" }),
        one("published_stream_limit_bytes", 10e9, { stream: "events" }),
        one("published_stream_oldest_seconds", oldest_s, { stream: "events" }),
      )[0]?.split(" ")[0]
    assert.equal(stored(9.5e9, 3_600), "warn")
    assert.equal(stored(9.5e9, 5 * 86_400), "ok", "full for days is how it is meant")
    assert.equal(stored(1e9, 3_600), "ok", "young")
    assert.deepEqual(found("events", one("mirror_lag_seconds", 120)), [
      "warn the mirror for NATS subscribers is 2 minutes behind",
    ])
  })

  it("is the floor of free space, and another release than this command's", () => {
    const disk = (free: number) =>
      found(
        "disk-floor",
        one("volume_disk_free_bytes", free),
        one("volume_disk_floor_bytes", 1e9),
      )[0]?.split(" ")[0]
    assert.deepEqual([disk(0.9e9), disk(1.9e9), disk(3e9)], ["fail", "warn", "ok"])
    const build = (served: string) =>
      found("version", one("build_info", 1, { version: served, node: "24.1.0" }))[0]?.split(" ")[0]
    assert.deepEqual([build(version), build("0.0.1")], ["ok", "warn"])
  })

  it("is judged by the limits of the alerts", () => {
    const { groups } = parse(readFileSync("deploy/prometheus/alerts.yml", "utf8"))
    const exprOf = (name: string): string =>
      groups[0].rules.find(({ alert }: { readonly alert: string }) => alert === name)?.expr ?? ""
    const ends = (name: string, limit: number) =>
      assert.match(exprOf(name).trim(), new RegExp(`> ${limit}$`), name)
    ends("AlmanacPublisherBehind", lag_s_max.publisher)
    ends("AlmanacMirrorBehind", lag_s_max.mirror)
    ends("AlmanacWebhookBehind", lag_s_max.webhook)
    ends("AlmanacSubscriberBehind", lag_s_max.subscriber)
    ends("AlmanacSubscriberMissedEvents", 0)
    ends("AlmanacEventsKeptBriefly", full_share)
    assert.include(exprOf("AlmanacEventsKeptBriefly"), `oldest_seconds) < ${retained_s_min}\n`)
  })
})

describe("the settings of a running server", () => {
  const server = given({
    tls: { cert: "certs/server.pem" },
    nats: { binary: "/opt/nats-server", password: Redacted.make("hunter2") },
    api: { bind_host: "10.0.0.1" },
    data: { dir: "/srv/almanac" },
  })
  const running = Schema.decodeUnknownSync(Schema.fromJsonString(RunningSettings))(
    JSON.stringify(exportSettings(server)),
  )

  it("contain no secret, and have absolute paths", () => {
    assert.notInclude(JSON.stringify(running), "hunter2")
    assert.deepEqual(running.secrets, ["nats.password"])
    assert.equal(running.values["tls.cert"], join(process.cwd(), "certs/server.pem"))
    assert.notProperty(running.values, "auth.tokens")
  })

  it("are what the server is judged by, with the secrets of who judges", () => {
    const own = given({ data: { dir: "./data" }, audit: { key_file: "/mine.pem" } })
    const { settings, differing, missing_secrets: lacking } = compareSettings(own, running)
    assert.deepEqual(differing.toSorted(), [
      "api.bind_host",
      "audit.key_file",
      "nats.binary",
      "tls.cert",
    ])
    assert.equal(settings.api.bind_host, "10.0.0.1")
    assert.equal(settings.audit.key_file, "")
    assert.equal(settings.data.dir, "./data")
    assert.deepEqual(lacking, ["nats.password"])
    assert.deepEqual(compareSettings(server, running).differing, [])
    assert.deepEqual(compareSettings(server, running).missing_secrets, [])
  })

  it("that are unknown or do not decode change nothing", () => {
    const values = { "nats.binary": 7, "gone.setting": true }
    assert.deepEqual(compareSettings(server, { values, secrets: [] }).differing, [])
  })
})
