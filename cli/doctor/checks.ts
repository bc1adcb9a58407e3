/** All checks of `almanac doctor`, and the settings that they use. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Cause, Clock, Effect, Layer } from "effect"
import type { LogStanding } from "#actors/system/log-standing.ts"
import type { Instance } from "#adapters/data-folder/instance-file.ts"
import { restoring_file } from "#adapters/data-folder/lock.ts"
import { busChecks } from "#adapters/doctor/bus.ts"
import {
  type Check,
  promiseCheck,
  runChecks,
  selectChecks,
  UnknownCheck,
} from "#adapters/doctor/checks.ts"
import { databaseFindings } from "#adapters/doctor/database.ts"
import { type Finding, fail, listNames, ok, warn } from "#adapters/doctor/finding.ts"
import { machineChecks } from "#adapters/doctor/machine.ts"
import { compareSettings, type SettingsComparison } from "#adapters/health/running-settings.ts"
import { lossFindings } from "#adapters/log/findings.ts"
import { logStanding } from "#adapters/log/size-monitor.ts"
import type { NatsConnection } from "#bus"
import { type Get, gatewayChecks } from "#cli/doctor/gateway.ts"
import { answer_ms_max, byAddress, byInstance } from "#cli/doctor/server-request.ts"
import { instance } from "#cli/instance.ts"
import { settings } from "#cli/root.ts"
import { CommitJudge } from "#events/log.ts"
import { mark_file } from "#journal"
import { causeText } from "#schemas/cause-text.ts"
import type { Settings } from "#schemas/settings.ts"
import { judge } from "#server/aggregate-kinds.ts"
import { leases_bucket } from "#server/lease.ts"
import { attachedBus, generations, logAsItIs, standing } from "#server/session.ts"

/** Timeout of the bus: shorter than at startup, yet enough for our own server to read its store. */
const bus_ms_max = 20_000

/** The checks of a gateway; an unreachable gateway is a finding. */
const gatewayOf = (get: () => Promise<Get>, is_all: boolean) =>
  Effect.tryPromise({ try: get, catch: causeText }).pipe(
    Effect.map((getPath) => gatewayChecks(getPath, is_all)),
    Effect.catch((why) =>
      Effect.succeed([promiseCheck("gateway", async () => fail("gateway", why))]),
    ),
  )

type BusCheck = Check<LogStanding | NatsConnection>

/** Checks for lost commits; no findings for a folder without a log. */
const logEnd = (of: Settings): BusCheck => {
  const { data, blob } = of
  const look = Effect.provide(lossFindings(data.dir, blob.dir), logAsItIs(of))
  return {
    name: "log-end",
    run: Effect.suspend(() => (existsSync(join(data.dir, mark_file)) ? look : Effect.succeed([]))),
  }
}

/** The checks of the bus and of the log in this folder. */
const checksOnBus = (of: Settings, is_running: boolean): ReadonlyArray<BusCheck> => {
  const options = {
    ...generations(of),
    leases_bucket,
    is_running,
    is_outside: of.nats.url !== "",
    checkpoint_seconds: of.audit.checkpoint_seconds,
  }
  return [...busChecks(options), logEnd(of)]
}

/** Runs checks on the running bus, or on an embedded server if none runs. */
const busFindings = (of: Settings, checks: ReadonlyArray<BusCheck>) => {
  const { nats, data } = of
  // Checks must not create a bus, nor open a partial restore.
  const is_nothing =
    (nats.url === "" && !existsSync(join(data.dir, "nats"))) ||
    existsSync(join(data.dir, restoring_file))
  if (is_nothing || checks.length === 0) return Effect.succeed([])
  return Effect.gen(function* () {
    const connected = yield* Layer.build(
      Layer.provideMerge(logStanding(standing(of)), attachedBus(of)),
    ).pipe(Effect.timeoutOrElse({ duration: bus_ms_max, orElse: () => Effect.fail(silent) }))
    return yield* runChecks(checks).pipe(
      Effect.provideContext(connected),
      Effect.provideService(CommitJudge, judge),
    )
  }).pipe(
    Effect.scoped,
    Effect.catchCause((cause) => Effect.succeed([fail("bus", causeText(Cause.squash(cause)))])),
  )
}

const silent = new Error(
  `The bus did not respond within ${bus_ms_max / 1000} s: check its log and disk.`,
)

const identity = ({ identity, services, keystone_authtoken: { auth_url } }: Settings) =>
  promiseCheck("identity", async () => {
    if (identity.kind !== "keystone" || !services.includes("share-protection")) return []
    try {
      const signal = AbortSignal.timeout(answer_ms_max)
      const { status } = await fetch(auth_url, { signal })
      const text = `Keystone at ${auth_url} responds with ${status}`
      return status < 400 ? ok("identity", text) : fail("identity", `${text}: check its log.`)
    } catch {
      return fail("identity", `Keystone at ${auth_url} does not respond.`)
    }
  })

const database = ({ database }: Settings) =>
  promiseCheck("database", async () =>
    database.connection.startsWith("postgres") ? await databaseFindings(database) : [],
  )

/** If a server runs, reports whether the checks use its settings. */
const settingsCheck = (
  running: Instance | undefined,
  effective: SettingsComparison | undefined,
): Check => ({
  name: "settings",
  run: Effect.sync((): ReadonlyArray<Finding> => {
    if (running === undefined) return []
    if (effective === undefined) {
      const why = "The release of the server does not record its settings"
      return [warn("settings", `${why}: the checks use the settings of this command.`)]
    }
    const { differing, missing_secrets } = effective
    if (missing_secrets.length > 0) {
      const why = `The server has ${listNames(missing_secrets)}, but this command does not`
      return [
        warn("settings", `${why}: run doctor with the --config and environment of the server.`),
      ]
    }
    const others = `those of this command differ in ${listNames(differing)}`
    const text = "the checks use the settings of the running server"
    return [ok("settings", differing.length === 0 ? text : `${text}; ${others}`)]
  }),
})

/** Settings of the running server; undefined without one. */
const effectiveSettings = (own: Settings, running: Instance | undefined) =>
  running?.settings === undefined ? undefined : compareSettings(own, running.settings)

/** Adds the server's certificate path, which older releases record separately. */
const withCertificate = (of: Settings, running: Instance | undefined): Settings =>
  of.tls.cert !== "" || running?.tls_cert === undefined
    ? of
    : { ...of, tls: { ...of.tls, cert: running.tls_cert } }

const requireKnown = (names: ReadonlyArray<string>, only: ReadonlyArray<string>) => {
  const unknown = only.filter((name) => !names.includes(name))
  if (unknown.length === 0) return Effect.void
  const message = `Unknown check ${unknown.join(", ")}: use any of ${names.join(", ")}.`
  return Effect.fail(new UnknownCheck({ message }))
}

const namesOf = (checks: ReadonlyArray<Check<never> | BusCheck>) => checks.map(({ name }) => name)

/** Findings of the named checks, or of all, on this machine and its server. */
export const localFindings = Effect.fnUntraced(function* (only: ReadonlyArray<string>) {
  const own = yield* settings
  const now_ms = yield* Clock.currentTimeMillis
  const running = yield* instance(own)
  const effective = effectiveSettings(own, running)
  const server_settings = withCertificate(effective?.settings ?? own, running)
  const none = `No server runs on ${own.data.dir}: only stored data is checked.`
  const gateway =
    running === undefined
      ? [promiseCheck("server", async () => warn("server", none))]
      : yield* gatewayOf(() => byInstance(running, server_settings), false)
  const without_bus: ReadonlyArray<Check> = [
    settingsCheck(running, effective),
    ...machineChecks(server_settings, now_ms),
    identity(server_settings),
    database(server_settings),
    ...gateway,
  ]
  const of_bus = checksOnBus(server_settings, running !== undefined)
  yield* requireKnown([...namesOf(without_bus), ...namesOf(of_bus)], only)
  const found = yield* runChecks(selectChecks(without_bus, only))
  return [...found, ...(yield* busFindings(server_settings, selectChecks(of_bus, only)))]
})

/** Findings of the named checks, or of all, on a remote gateway. */
export const remoteFindings = Effect.fnUntraced(function* (
  url: string,
  data_dir: string,
  only: ReadonlyArray<string>,
) {
  const checks = yield* gatewayOf(() => byAddress(url, data_dir), true)
  yield* requireKnown(namesOf(checks), only)
  return yield* runChecks(selectChecks(checks, only))
})
