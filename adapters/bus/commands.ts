/**
 * Commands over the bus: request and reply on `command.<service>.<aggregate>.<id>`, or on a subject
 * that the caller chooses.
 *
 * Hosts of one service form a queue group, so any of them serves. The version check of the log
 * prevents conflicting writes by two hosts, and the command's id makes a retry idempotent.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Duration, Effect, FiberSet, Layer, Option, Result, Schedule, Schema } from "effect"
import { type Addressed, Commands, streamOf, Unavailable } from "#actors/commands.ts"
import type { AnyDecider } from "#actors/decider.ts"
import { core_inbox, type Link, overLink, responseSubject, sendResponse, watchLink } from "#bus"
import type { Origin } from "#events/log.ts"
import { traceNow, underTrace } from "#events/trace.ts"
import { StopDeadline } from "#processes"

/** Timeout of one attempt in milliseconds: the log's own timeout plus a margin. */
const response_ms_max = 12_000

/** Maximum attempts, with one command id: 1.5 s for a host or connection to recover. */
const attempts_max = 5

/** First pause between two attempts in milliseconds; it doubles. */
const pause_ms = 100

/** Timeout of all attempts in milliseconds: half of a request's default timeout. */
const total_ms_max = 30_000

/** Maximum concurrent commands of a host: each may hold a message of 1 MB. */
const concurrent_max = 256

/** Drain timeout of commands in progress in milliseconds; may be less on shutdown. */
const drain_ms_max = 5_000

/** Maximum characters of a command's id or an actor: 64 ids stay below a commit's limit. */
const name_chars_max = 1000

const Name = Schema.String.check(Schema.isMaxLength(name_chars_max))

/** RFC 3339 in UTC, the format that readers of a commit expect. */
const Timestamp = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/),
  Schema.makeFilter((text) => !Number.isNaN(Date.parse(text))),
)

/** Sender fields that are stored in a commit; anything else from the bus is dropped. */
const Sender = Schema.Struct({
  command_id: Name,
  fingerprint: Schema.optionalKey(Name),
  actor: Name,
  at: Timestamp,
  request_id: Schema.optionalKey(Name),
  correlation_id: Schema.optionalKey(Name),
  cause: Schema.optionalKey(Name),
  trace: Schema.optionalKey(Name),
})

const Request = Schema.Struct({
  origin: Sender,
  commands: Schema.Array(Schema.Struct({ name: Name, id: Name, command: Schema.Unknown })).check(
    Schema.isMinLength(1),
  ),
})
type Request = typeof Request.Type

const decodeRequest = Schema.decodeUnknownOption(Schema.fromJsonString(Request))

/** Milliseconds between two log lines about requests without a valid inbox. */
const warning_ms = 10_000

type Reply =
  | { readonly position: number }
  | { readonly rejection: unknown; readonly of: string }
  | { readonly unavailable: string; readonly is_reused?: boolean }
  /** Another host may have capacity, or this one soon. */
  | { readonly busy: true }

const encode = (value: unknown) => JSON.stringify(value)

const requestOf = (origin: Origin, commands: ReadonlyArray<Addressed<unknown>>): Request => ({
  origin,
  commands: commands.map(({ to, id, command }) => ({
    name: to.name,
    id,
    command: Schema.encodeUnknownSync(to.command)(command),
  })),
})

/** One attempt; fails immediately if there is no responder or the connection is lost. */
const sendRequest = (
  connection: NatsConnection,
  link: Link,
  subject: string,
  request: string,
  response_ms: number,
) =>
  Effect.tryPromise({
    try: () => overLink(link, () => connection.request(subject, request, { timeout: response_ms })),
    catch: (error) => new Unavailable({ detail: `No host responded: ${String(error)}` }),
  }).pipe(
    Effect.flatMap((message) => {
      const reply = message.json<Reply>()
      const busy = new Unavailable({ detail: "All hosts are busy." })
      return "busy" in reply ? Effect.fail(busy) : Effect.succeed(reply)
    }),
  )

const too_late = Effect.fail(new Unavailable({ detail: "No host responded in time." }))

export interface RemoteOptions {
  readonly response_ms?: number
  readonly total_ms?: number
  /** Subject of all commands, overriding the one derived from the aggregate. */
  readonly subject?: string
}

/** Sends each command to a free host of its service or subject. */
export const remoteCommands = (
  connection: NatsConnection,
  { response_ms = response_ms_max, total_ms = total_ms_max, subject }: RemoteOptions = {},
) =>
  Layer.effect(
    Commands,
    Effect.gen(function* () {
      const link = yield* watchLink(connection)
      return Commands.of({
        send: Effect.fnUntraced(function* <Rejection>(
          origin: Origin,
          ...commands: ReadonlyArray<Addressed<Rejection>>
        ) {
          const [first] = commands
          if (first === undefined)
            return yield* new Unavailable({ detail: "The request contains no command." })
          const trace = yield* traceNow
          const traced = trace === undefined ? origin : { ...origin, trace }
          const request = encode(requestOf(traced, commands))
          const to_subject = subject ?? `command.${streamOf(first)}`
          const reply = yield* sendRequest(connection, link, to_subject, request, response_ms).pipe(
            Effect.retry({ times: attempts_max - 1, schedule: Schedule.exponential(pause_ms) }),
            Effect.timeoutOrElse({ duration: Duration.millis(total_ms), orElse: () => too_late }),
          )
          if ("position" in reply) return reply.position
          if ("unavailable" in reply) {
            const { unavailable: detail, is_reused = false } = reply
            return yield* new Unavailable({ detail, is_reused })
          }
          const { to } = commands.find(({ to }) => to.name === reply.of) ?? first
          return yield* Effect.fail(Schema.decodeUnknownSync(to.rejection)(reply.rejection))
        }),
      })
    }),
  )

/** Subscription of a host and the commands that it accepts. */
export interface ServeOptions {
  readonly subject: string
  /** Queue group: one free member receives each command. */
  readonly queue: string
  /** First token of the inbox for responses, by the request's subject; `_INBOX` if absent. */
  readonly inbox?: (subject: string) => string
  readonly deciders: ReadonlyArray<AnyDecider>
  /** Access check: a rejection by the first command's decider, or none. */
  readonly refuse?: (
    subject: string,
    origin: Origin,
    commands: ReadonlyArray<Addressed<unknown>>,
  ) => Effect.Effect<unknown, Unavailable>
}

/** Executes the commands in a message; failures become responses. */
const commandExecutor = (
  commands: Commands["Service"],
  { deciders, refuse = () => Effect.undefined }: ServeOptions,
): ((message: Msg) => Effect.Effect<Reply>) => {
  const deciders_by_name = new Map(deciders.map((decider) => [decider.name, decider]))
  return Effect.fnUntraced(
    function* (message) {
      const request = decodeRequest(message.string())
      if (Option.isNone(request)) throw new Error("The request is malformed.")
      const { origin, commands: entries } = request.value
      const addressed: Array<Addressed<unknown>> = []
      for (const { name, id, command } of entries) {
        const to = deciders_by_name.get(name)
        if (to === undefined)
          return { unavailable: `This host does not serve the aggregate ${name}.` }
        addressed.push({ to, id, command: Schema.decodeUnknownSync(to.command)(command) })
      }
      const result = yield* Effect.result(
        Effect.gen(function* () {
          const refusal = yield* refuse(message.subject, origin, addressed)
          if (refusal !== undefined) return yield* Effect.fail(refusal)
          return yield* underTrace(origin.trace)(commands.send(origin, ...addressed))
        }),
      )
      if (Result.isSuccess(result)) return { position: result.success }
      const { failure } = result
      if (failure instanceof Unavailable) {
        const { detail: unavailable, is_reused = false } = failure
        return { unavailable, is_reused }
      }
      return encodeRejection(addressed, failure)
    },
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("A command failed.", defect), {
        unavailable: "The host failed; see its log.",
      }),
    ),
  )
}

/** Serves the commands of a service with the `Commands` of this process. See serveCommandsOn. */
export const serveCommands = (
  connection: NatsConnection,
  service: string,
  deciders: ReadonlyArray<AnyDecider>,
) => serveCommandsOn(connection, { subject: `command.${service}.>`, queue: service, deciders })

/**
 * Serves commands with the `Commands` of this process until the scope closes. Then it accepts no
 * more and completes those in progress; commands not done within 5 s go to another host.
 */
export const serveCommandsOn = Effect.fnUntraced(function* (
  connection: NatsConnection,
  options: ServeOptions,
) {
  const execute = commandExecutor(yield* Commands, options)
  const { inbox = () => core_inbox } = options
  const active = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(active)<never>()
  let count = 0
  let warned_at = Number.NEGATIVE_INFINITY

  // Without an inbox for the response the command is not executed either.
  const ignore = ({ subject }: Msg) => {
    if (performance.now() - warned_at < warning_ms) return
    warned_at = performance.now()
    const prefix = inbox(subject)
    run(
      Effect.logWarning(`Ignored a request on ${subject}: its reply subject is not in ${prefix}.`),
    )
  }
  const respond = (message: Msg, reply: Reply) =>
    sendResponse(connection, inbox(message.subject), message, encode(reply))
  const work = (message: Msg) =>
    Effect.map(execute(message), (reply) => respond(message, reply)).pipe(
      // The host stops before it is done: another host retries under the same id.
      Effect.onInterrupt(() => Effect.sync(() => respond(message, { busy: true }))),
      Effect.ensuring(Effect.sync(() => count--)),
    )

  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(options.subject, {
        queue: options.queue,
        callback: (error, message) => {
          if (error !== null) return
          if (responseSubject(inbox(message.subject), message) === undefined) return ignore(message)
          if (count >= concurrent_max) return respond(message, { busy: true })
          count++
          run(work(message))
        },
      }),
    ),
    Effect.fnUntraced(function* (subscription) {
      const wait_ms = yield* (yield* StopDeadline).part(drain_ms_max)
      yield* Effect.tryPromise({ try: () => subscription.drain(), catch: String }).pipe(
        // A closed connection has nothing to drain.
        Effect.ignore,
        Effect.andThen(FiberSet.awaitEmpty(active)),
        Effect.timeoutOption(wait_ms),
      )
    }),
  )
})

/** Encodes a rejection with the schema of the decider that made it. */
const encodeRejection = (addressed: ReadonlyArray<Addressed<unknown>>, failure: unknown): Reply => {
  for (const { to } of addressed) {
    if (Schema.is(to.rejection)(failure)) {
      return { rejection: Schema.encodeUnknownSync(to.rejection)(failure), of: to.name }
    }
  }
  throw new Error(`No decider owns the rejection ${String(failure)}`)
}
