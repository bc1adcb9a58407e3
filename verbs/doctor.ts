/** `almanac doctor`: whether this machine, or a deployment, is as it should be. */

import { existsSync } from "node:fs"
import { type IncomingMessage, request as plainRequest } from "node:http"
import { request as tlsRequest } from "node:https"
import { join } from "node:path"
import { Cause, Clock, Console, Effect, Layer, Redacted, Runtime, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { restoring_file } from "#adapters/data-lock.ts"
import { busFindings } from "#adapters/doctor-bus.ts"
import { databaseFindings } from "#adapters/doctor-database.ts"
import { machineFindings } from "#adapters/doctor-machine.ts"
import { type Finding, fail, ok, some, warn } from "#adapters/finding.ts"
import type { Instance } from "#adapters/instance-file.ts"
import { lossFindings } from "#adapters/log/doctor-log.ts"
import { mark_file } from "#adapters/log/high-water-mark.ts"
import { logStanding } from "#adapters/log-standing.ts"
import { type Access, accessOf } from "#client/access.ts"
import { whole } from "#client/whole.ts"
import { causeText } from "#schemas/cause-text.ts"
import type { Settings } from "#schemas/settings.ts"
import { type Answered, type Get, gatewayFindings } from "#verbs/doctor-gateway.ts"
import { instance, shownBy } from "#verbs/instance.ts"
import { leases_bucket } from "#verbs/leased.ts"
import { settings } from "#verbs/root.ts"
import { busBeside, generations, log, standing } from "#verbs/session.ts"

/** Something must be mended; the lines say what: exit code 1. */
class Unwell extends Schema.TaggedError<Unwell>()("Unwell", { message: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 1
}

/** A gateway that does not answer within this does not serve, in milliseconds. */
const answer_ms_max = 10_000
/** A bus that stands still is not waited for as a start does; one of our own reads its store in. */
const bus_ms_max = 20_000
/** A list of read models, nodes or webhooks is a fraction of this, in bytes. */
const answer_bytes_max = 8 * 1024 * 1024

/** How a gateway is asked: nothing is tried again, since how it answers is what is looked for. */
const getOf =
  ({ url, tls, headers }: Pick<Access, "url" | "tls" | "headers">): Get =>
  async (path) => {
    const signal = AbortSignal.timeout(answer_ms_max)
    const to = new URL(url.replace(/\/+$/, "") + path)
    const is_tls = to.protocol === "https:"
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const known = { accept: "application/json", ...(await headers("admin", signal)) }
    const options = { headers: known, signal, ...(is_tls ? tls : {}) }
    const sent = (is_tls ? tlsRequest : plainRequest)(to, options, resolve)
    sent.on("error", reject)
    sent.end()
    const answer = await promise
    const tooLong = (why: string) => new Error(`${path}: the answer is ${why}`)
    const text = (await whole(answer, answer_bytes_max, tooLong)).toString()
    return { status: answer.statusCode ?? 0, text } satisfies Answered
  }

/** The server of this folder, asked as its operator. */
const byInstance = async (running: Instance, settings: Settings) => {
  const authorization = `Bearer ${Redacted.value(running.control_token)}`
  const tls = (await shownBy(running, settings)) ?? {}
  return getOf({ url: running.url, tls, headers: async () => ({ authorization }) })
}

/** The gateway at an address, with the token that the environment or a profile has. */
const byAddress = async (url: string, data_dir: string) => {
  const signal = AbortSignal.timeout(answer_ms_max)
  return getOf(await accessOf({ env: { ...process.env, ALMANAC_URL: url }, data_dir, signal }))
}

/** What a gateway tells; `is_all` where it is the only one to be asked. */
const asked = (get: () => Promise<Get>, is_all: boolean) =>
  Effect.promise(async () => {
    try {
      return await gatewayFindings(await get(), is_all)
    } catch (cause) {
      return [fail("gateway", causeText(cause))]
    }
  })

/** The bus beside what runs, or over a server of our own where nothing does. */
const bus = Effect.fnUntraced(function* (of: Settings, runs: boolean) {
  const { audit, nats, data } = of
  // To look is not to make.
  if (nats.url === "" && !existsSync(join(data.dir, "nats"))) return []
  return yield* busFindings({
    ...generations(of),
    leases_bucket,
    runs,
    is_outside: nats.url !== "",
    checkpoint_seconds: audit.checkpoint_seconds,
  }).pipe(
    Effect.provide(Layer.provideMerge(logStanding(standing(of)), busBeside(of))),
    Effect.catch((cause) => Effect.succeed([fail("bus", cause.message)])),
    Effect.timeoutOrElse({
      duration: bus_ms_max,
      orElse: () =>
        Effect.succeed([
          fail(
            "bus",
            `It does not answer within ${bus_ms_max / 1000} s: look at its log and disk.`,
          ),
        ]),
    }),
  )
})

/** What is missing from the log; where this folder never had one, nothing is made. */
const losses = (of: Settings) =>
  existsSync(join(of.data.dir, mark_file))
    ? lossFindings(of.data.dir).pipe(
        Effect.provide(Layer.provide(log(of), busBeside(of))),
        Effect.timeout(bus_ms_max),
        Effect.catchCause((cause) =>
          Effect.succeed([
            fail("log end", `It cannot be compared: ${causeText(Cause.squash(cause))}`),
          ]),
        ),
      )
    : Effect.succeed([])

const identity = ({ identity, services, keystone_authtoken: { auth_url } }: Settings) =>
  Effect.promise(async (): Promise<ReadonlyArray<Finding>> => {
    if (identity.kind !== "keystone" || !services.includes("share-protection")) return []
    try {
      const signal = AbortSignal.timeout(answer_ms_max)
      const { status } = await fetch(auth_url, { signal })
      const told = `Keystone at ${auth_url} answers ${status}`
      return [status < 400 ? ok("identity", told) : fail("identity", `${told}: look there.`)]
    } catch {
      return [fail("identity", `Keystone at ${auth_url} does not answer.`)]
    }
  })

const database = ({ database }: Settings) =>
  database.connection.startsWith("postgres")
    ? Effect.promise(() => databaseFindings(database))
    : Effect.succeed([])

/** The settings, with the certificate of a server that was perhaps told it alone. */
const withCertificate = (of: Settings, running: Instance | undefined): Settings =>
  of.tls.cert !== "" || running?.tls_cert === undefined
    ? of
    : { ...of, tls: { ...of.tls, cert: running.tls_cert } }

const here = Effect.gen(function* () {
  const configured = yield* settings
  const now_ms = yield* Clock.currentTimeMillis
  const running = yield* instance(configured)
  const served = withCertificate(configured, running)
  const machine = yield* Effect.promise(() => machineFindings(served, now_ms))
  const gateway =
    running === undefined
      ? [warn("server", `None runs on ${configured.data.dir}: this looks at what is kept.`)]
      : yield* asked(() => byInstance(running, configured), false)
  const is_half_restored = existsSync(join(configured.data.dir, restoring_file))
  const found = is_half_restored
    ? []
    : [...(yield* bus(configured, running !== undefined)), ...(yield* losses(configured))]
  const beside = [...(yield* identity(configured)), ...(yield* database(configured))]
  return [...machine, ...beside, ...gateway, ...found]
})

const word_chars = 12

const lineOf = ({ status, what, why }: Finding) =>
  `${status.padEnd(4)}  ${what.padEnd(word_chars)}  ${why}`

export const doctor = Command.make(
  "doctor",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription("A gateway elsewhere, by HTTP alone; its token in ALMANAC_TOKEN"),
      Flag.withDefault(""),
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("One JSON document for programs: a list of {status, what, why}"),
      Flag.withDefault(false),
    ),
  },
  Effect.fn(function* ({ url, json }) {
    const data_dir = process.env.ALMANAC_DATA_DIR || "./data"
    const all = url === "" ? yield* here : yield* asked(() => byAddress(url, data_dir), true)
    if (json) yield* Console.log(JSON.stringify(all))
    else for (const one of all) yield* Console.log(lineOf(one))
    const failed = all.filter(({ status }) => status === "fail").map(({ what }) => what)
    if (failed.length > 0) {
      return yield* new Unwell({ message: `to be mended: ${some([...new Set(failed)])}` })
    }
  }),
).pipe(
  Command.withDescription(
    "Look at this machine, its server and bus: a line each, and what to do. Exit code 1 on fail",
  ),
  Command.withExamples([
    { command: "almanac doctor", description: "This machine, and what runs on it" },
    { command: "almanac doctor --json", description: "The same, for a program" },
    {
      command: "almanac doctor --url https://backup.example.com",
      description: "A gateway elsewhere, with a token in ALMANAC_TOKEN",
    },
  ]),
)
