/** Checks of `almanac doctor` on the bus: server, streams, leases and the log's files. */
import { PersistMode, type StreamInfo } from "@nats-io/jetstream"
import { Context, Effect, Layer, Option, Result, Stream } from "effect"
import { checkpoint_stream } from "#actors/system/checkpoint.ts"
import { LogStanding, warningOf } from "#actors/system/log-standing.ts"
import { scanQuarantine } from "#actors/system/quarantine.ts"
import type { Check } from "#adapters/doctor/checks.ts"
import {
  type Finding,
  fail,
  formatDuration,
  listNames,
  ok,
  warn,
} from "#adapters/doctor/finding.ts"
import { leasesHeld } from "#adapters/leases/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { differencesOf, NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import {
  completeArchive,
  findGenerations,
  type GenerationsOptions,
  logGenerations,
  logStreamConfig,
  optionsOf,
  readFailure,
} from "#journal"

/**
 * Clock skew at which times in the log are unreliable, and leases, which last ten seconds, at risk.
 */
const skew_ms_warn = 500
const skew_ms_fail = 5_000

/** A checkpoint is late after this many intervals. */
const checkpoints_late = 3

const request = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: readFailure })

const server = Effect.gen(function* () {
  const { connection, jsm } = yield* NatsConnection
  const account = yield* request(() => jsm.getAccountInfo())
  const rtt = yield* request(() => connection.rtt())
  const { version, server_name } = connection.info ?? {}
  // The client's types lack `level`.
  const level = (account.api as { readonly level?: number }).level ?? 0
  return ok("nats", `nats-server ${version} (${server_name}), api level ${level}, ${rtt} ms away`)
})

const clock = ({ ts }: StreamInfo, before_ms: number, after_ms: number): Finding => {
  if (ts === undefined) return warn("clock", "The server does not report its time.")
  const server_ms = Date.parse(ts)
  const skew = server_ms < before_ms ? before_ms - server_ms : Math.max(0, server_ms - after_ms)
  const summary = `the clocks of the bus and of this machine differ by ${Math.round(skew)} ms`
  if (skew >= skew_ms_fail) return fail("clock", `${summary}: synchronize both with a time server.`)
  return skew >= skew_ms_warn ? warn("clock", `${summary}: check NTP.`) : ok("clock", summary)
}

/**
 * nats-server does not replicate streams with asynchronous persistence, and cannot change that
 * mode.
 */
const unreplicable = ({ config }: StreamInfo): ReadonlyArray<Finding> =>
  config.name === events_stream && config.persist_mode === PersistMode.Async
    ? [
        warn(
          "copies",
          `${events_stream} can never have more than one replica; restore-state can recreate it.`,
        ),
      ]
    : []

/** Replicas of a stream that are missing, offline or behind. */
const copies = ({ config, cluster }: StreamInfo, replicas: number): ReadonlyArray<Finding> => {
  const { name, num_replicas } = config
  const missing_replicas =
    num_replicas < replicas
      ? [warn("copies", `${name} has ${num_replicas} of ${replicas} replicas: restart Almanac.`)]
      : []
  if (num_replicas === 1 || cluster === undefined) return missing_replicas
  const { leader, replicas: peers = [] } = cluster
  if (!leader) return [fail("copies", `${name} has no leader: too few servers are up.`)]
  const offline_peers = peers.filter(({ offline }) => offline).map((peer) => peer.name)
  const behind = peers.filter(({ current, offline }) => !current && !offline)
  if (offline_peers.length > 0)
    return [
      fail("copies", `${name}: ${listNames(offline_peers)} offline: start them.`),
      ...missing_replicas,
    ]
  if (behind.length > 0) {
    const names = listNames(behind.map((peer) => peer.name))
    return [warn("copies", `${name}: ${names} still catching up.`), ...missing_replicas]
  }
  return [ok("copies", `${name}: ${num_replicas}, led by ${leader}`), ...missing_replicas]
}

const listStreams = Effect.gen(function* () {
  const { jsm } = yield* NatsConnection
  return yield* request(async () => {
    const all: Array<StreamInfo> = []
    for await (const info of jsm.streams.list()) all.push(info)
    return all
  })
})

/** The options of the log's stream, and the archives of earlier generations. */
const log = Effect.fnUntraced(function* (options: GenerationsOptions) {
  const { jsm } = yield* NatsConnection
  const { current } = yield* findGenerations(jsm, options.name)
  const before_ms = Date.now()
  const info = yield* request(() => jsm.streams.info(current.stream))
  const time = clock(info, before_ms, Date.now())
  const differences = differencesOf(logStreamConfig(optionsOf(options, current)), info.config)
  const fixed_options = differences.filter(
    ({ option }) => option !== "num_replicas" && option !== "max_bytes",
  )
  const names = fixed_options.map(({ option }) => option)
  const stream =
    fixed_options.length === 0
      ? ok("log", `${current.stream}, generation ${current.number}`)
      : fail(
          "log",
          `${current.stream} has wrong settings: ${listNames(names)}. Find out who changed them.`,
        )
  const files: Array<Finding> = []
  for (let number = 1; number < current.number; number++) {
    const index = yield* Effect.result(completeArchive(options.folder, number))
    if (Result.isFailure(index)) files.push(fail("log", index.failure.detail))
  }
  return [time, stream, ...files]
})

const size = Effect.gen(function* () {
  const { figures } = yield* LogStanding
  const found = yield* figures
  const warning = warningOf(found)
  if (warning !== undefined) return warn("log size", warning.text)
  const { position, aggregates, bytes, used_share } = found
  const share = used_share === null ? "" : `, ${(used_share * 100).toFixed(1)}% of its limit`
  return ok("log size", `position ${position}, ${aggregates} aggregates, ${bytes} bytes${share}`)
})

/** Opens the log read-only, so that its stream is neither created nor changed. */
const openLog = (options: GenerationsOptions) =>
  Layer.build(logGenerations({ ...options, read_only: true }))

/** Whether the log is sealed regularly; `is_running` is whether a server runs at all. */
const checkpoints = Effect.fnUntraced(function* ({
  checkpoint_seconds: seconds,
  is_running,
  ...options
}: BusCheckOptions) {
  const log = Context.get(yield* openLog(options), Log)
  const now_ms = Date.now()
  const head = yield* log.head("")
  const last = yield* log.load(checkpoint_stream)
  if (last === undefined) {
    return head === 0 || !is_running
      ? ok("checkpoint", "none yet")
      : warn("checkpoint", `no checkpoint yet, ${head} commits are not sealed`)
  }
  const age = now_ms - Date.parse(last.commit.at)
  const later = head - last.position
  const summary = `the last checkpoint is ${formatDuration(age)} old, ${later} commits follow it`
  const next = yield* Stream.runHead(log.read("", last.position))
  const waiting_ms = next._tag === "Some" ? now_ms - Date.parse(next.value.commit.at) : 0
  if (is_running && waiting_ms > checkpoints_late * seconds * 1000) {
    return warn(
      "checkpoint",
      `${summary}: the log is not being sealed; check which process holds system-checkpointer.`,
    )
  }
  return ok("checkpoint", summary)
}, Effect.scoped)

/** Maximum unreadable commits to list, and the timeout of the search in milliseconds. */
const listed_max = 3
const quarantine_ms_max = 5_000

/** Commits that no release wrote. A long log is left to `almanac log quarantine`. */
const quarantine = Effect.fnUntraced(function* (options: BusCheckOptions) {
  const found = yield* scanQuarantine(listed_max).pipe(
    Effect.provideContext(yield* openLog(options)),
    Effect.timeoutOption(quarantine_ms_max),
  )
  if (Option.isNone(found)) {
    return ok("quarantine", "not checked in a log of this size: run almanac log quarantine")
  }
  const { count, open } = found.value
  if (count === 0) return ok("quarantine", "every commit can be read")
  if (open === 0) return ok("quarantine", `${count} commits cannot be read, all acknowledged`)
  const first = found.value.first.filter(({ acknowledged }) => !acknowledged)
  const listed = first.map(({ position, stream, reason }) => `${position} ${stream}: ${reason}`)
  const more = open > first.length ? ` and ${open - first.length} more` : ""
  return warn(
    "quarantine",
    `${listed.join("; ")}${more}. They are skipped. Run almanac log quarantine to list them, ` +
      "find out who published them, then run almanac log acknowledge (docs/guide-audit.md).",
  )
}, Effect.scoped)

const leases = Effect.fnUntraced(function* (bucket: string, is_running: boolean) {
  const holding = yield* leasesHeld(bucket)
  if (holding.length === 0) {
    return is_running
      ? warn("leases", "No lease is held: no process has the role conductor.")
      : ok("leases", "all free")
  }
  const holders = Map.groupBy(holding, ({ holder }) => holder)
  const summary = [...holders].map(
    ([holder, held_leases]) => `${holder}: ${held_leases.map(({ name }) => name).join(", ")}`,
  )
  return ok("leases", summary.join("; "))
})

export interface BusCheckOptions extends GenerationsOptions {
  readonly leases_bucket: string
  /** Seconds between two checkpoints. */
  readonly checkpoint_seconds: number
  /** Whether a server runs on this data folder. */
  readonly is_running: boolean
  /** Whether the bus is external (`nats.url`). */
  readonly is_outside: boolean
}

/** Whether the bus has any generation of this log; true if unknown. */
const hasLog = ({ name }: BusCheckOptions) =>
  Effect.map(listStreams, (infos) =>
    infos.some(({ config }) => config.name === name || config.name.startsWith(`${name}_`)),
  ).pipe(Effect.orElseSucceed(() => true))

const missingLog = ({ name, is_running }: BusCheckOptions) =>
  (is_running ? fail : warn)(
    "log",
    `${name} does not exist on this bus: the first start creates it, ` +
      "and almanac restore-state restores a lost one.",
  )

const copyChecks = ({ replicas, is_outside }: BusCheckOptions) =>
  Effect.map(listStreams, (infos) => [
    ...infos.flatMap((info) => [
      ...copies(info, replicas),
      ...(is_outside && replicas > 1 ? unreplicable(info) : []),
    ]),
    ...(is_outside && replicas === 1
      ? [warn("copies", "nats.replicas is 1: losing one server loses all data.")]
      : []),
  ])

/** The checks of the bus. Without a log, one check reports that, and the others do nothing. */
export const busChecks = (
  options: BusCheckOptions,
): ReadonlyArray<Check<LogStanding | NatsConnection>> => {
  type CheckRun = Check<LogStanding | NatsConnection>["run"]
  const ifLogExists = (name: string, found: CheckRun) => ({
    name,
    run: Effect.flatMap(
      hasLog(options),
      (exists): CheckRun => (exists ? found : Effect.succeed([])),
    ),
  })
  return [
    { name: "nats", run: server },
    {
      name: "log",
      run: Effect.flatMap(
        hasLog(options),
        (exists): CheckRun => (exists ? log(options) : Effect.succeed(missingLog(options))),
      ),
    },
    ifLogExists("copies", copyChecks(options)),
    ifLogExists("log-size", size),
    ifLogExists("checkpoint", checkpoints(options)),
    ifLogExists("quarantine", quarantine(options)),
    ifLogExists("leases", leases(options.leases_bucket, options.is_running)),
  ]
}
