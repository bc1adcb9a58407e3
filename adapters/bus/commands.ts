/**
 * Commands over the bus: request and reply on `command.<service>.<aggregate>.<id>`, or on whatever
 * subject somebody's own commands come by.
 *
 * Hosts of one service form a queue group, so any of them serves. The version check of the log
 * keeps two hosts from contradicting each other, and the command's id makes a second try safe.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Duration, Effect, FiberSet, Layer, Option, Result, Schedule, Schema } from "effect"
import { type Addressed, Commands, streamOf, Unavailable } from "#actors/commands.ts"
import type { AnyDecider } from "#actors/decider.ts"
import { core_inbox, type Link, overLink, responseSubject, sendResponse, watchLink } from "#bus"
import type { Origin } from "#events/log.ts"
import { traceNow, underTrace } from "#events/trace.ts"
import { StopDeadline } from "#processes"

/** How long one try waits for its answer, in milliseconds: the log's own limit and a margin. */
const answer_ms_max = 12_000

/** Tries in all, each under the same command id: 1.5 s for a host or a connection to come back. */
const attempts_max = 5

/** First pause between two tries, in milliseconds; it doubles. */
const pause_ms = 100

/** All tries together, in milliseconds: half of what a request has by default. */
const whole_ms_max = 30_000

/** Commands that a host works on at the same time: each may hold a message of 1 MB. */
const under_way_max = 256

/** How long commands under way get when the host ends, in milliseconds; in a stop maybe less. */
const ending_ms_max = 5_000

/** Characters of a command's id, an actor and the like: 64 ids stay below a commit's limit. */
const name_chars_max = 1000

const Name = Schema.String.check(Schema.isMaxLength(name_chars_max))

/** RFC 3339 in UTC, as every reader of a commit takes it. */
const Moment = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/),
  Schema.makeFilter((text) => !Number.isNaN(Date.parse(text))),
)

/** What a commit keeps of its sender for ever, so nothing else gets into it over the bus. */
const Sender = Schema.Struct({
  command_id: Name,
  fingerprint: Schema.optionalKey(Name),
  actor: Name,
  at: Moment,
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

/** Milliseconds between two log lines about requests that name no inbox. */
const warning_ms = 10_000

type Reply =
  | { readonly position: number }
  | { readonly rejection: unknown; readonly of: string }
  | { readonly unavailable: string; readonly is_reused?: boolean }
  /** Another host may have room, or this one soon. */
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

/** One try; it fails at once when nobody listens or the connection is lost. */
const ask = (
  connection: NatsConnection,
  link: Link,
  subject: string,
  request: string,
  answer_ms: number,
) =>
  Effect.tryPromise({
    try: () => overLink(link, () => connection.request(subject, request, { timeout: answer_ms })),
    catch: (error) => new Unavailable({ detail: `No host answered: ${String(error)}` }),
  }).pipe(
    Effect.flatMap((message) => {
      const reply = message.json<Reply>()
      const busy = new Unavailable({ detail: "All hosts are busy." })
      return "busy" in reply ? Effect.fail(busy) : Effect.succeed(reply)
    }),
  )

const too_late = Effect.fail(new Unavailable({ detail: "No host answered in time." }))

export interface RemoteOptions {
  readonly answer_ms?: number
  readonly whole_ms?: number
  /** Where all commands go, whatever they are for. */
  readonly subject?: string
}

/** Sends each command to whichever host of its service is free, or of that subject. */
export const remoteCommands = (
  connection: NatsConnection,
  { answer_ms = answer_ms_max, whole_ms = whole_ms_max, subject }: RemoteOptions = {},
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
          if (first === undefined) return yield* new Unavailable({ detail: "There is no command." })
          const trace = yield* traceNow
          const traced = trace === undefined ? origin : { ...origin, trace }
          const request = encode(requestOf(traced, commands))
          const to_subject = subject ?? `command.${streamOf(first)}`
          const reply = yield* ask(connection, link, to_subject, request, answer_ms).pipe(
            Effect.retry({ times: attempts_max - 1, schedule: Schedule.exponential(pause_ms) }),
            Effect.timeoutOrElse({ duration: Duration.millis(whole_ms), orElse: () => too_late }),
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

/** Where commands are waited for, and which. */
export interface Serving {
  readonly subject: string
  /** Who of this name is free serves a command; the others never hear of it. */
  readonly queue: string
  /** First token of the inbox that answers go to, by the request's subject; `_INBOX` if absent. */
  readonly inbox?: (subject: string) => string
  readonly deciders: ReadonlyArray<AnyDecider>
  /** Why this is not carried out, if it is not: a rejection of the first command's decider. */
  readonly refuse?: (
    subject: string,
    origin: Origin,
    commands: ReadonlyArray<Addressed<unknown>>,
  ) => Effect.Effect<unknown, Unavailable>
}

/** Carries out what a message asks; whatever is wrong with it becomes an answer. */
const answerOf = (
  commands: Commands["Service"],
  { deciders, refuse = () => Effect.undefined }: Serving,
): ((message: Msg) => Effect.Effect<Reply>) => {
  const kinds = new Map(deciders.map((decider) => [decider.name, decider]))
  return Effect.fnUntraced(
    function* (message) {
      const request = decodeRequest(message.string())
      if (Option.isNone(request)) throw new Error("The request is malformed.")
      const { origin, commands: named } = request.value
      const addressed: Array<Addressed<unknown>> = []
      for (const { name, id, command } of named) {
        const to = kinds.get(name)
        if (to === undefined) return { unavailable: `No aggregate ${name} is served here.` }
        addressed.push({ to, id, command: Schema.decodeUnknownSync(to.command)(command) })
      }
      const sent = yield* Effect.result(
        Effect.gen(function* () {
          const refusal = yield* refuse(message.subject, origin, addressed)
          if (refusal !== undefined) return yield* Effect.fail(refusal)
          return yield* underTrace(origin.trace)(commands.send(origin, ...addressed))
        }),
      )
      if (Result.isSuccess(sent)) return { position: sent.success }
      const { failure } = sent
      if (failure instanceof Unavailable) {
        const { detail: unavailable, is_reused = false } = failure
        return { unavailable, is_reused }
      }
      return rejected(addressed, failure)
    },
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("A command failed.", defect), {
        unavailable: "The host failed; its log says why.",
      }),
    ),
  )
}

/** Answers the commands of a service with the `Commands` of this process. See answerCommands. */
export const serveCommands = (
  connection: NatsConnection,
  service: string,
  deciders: ReadonlyArray<AnyDecider>,
) => answerCommands(connection, { subject: `command.${service}.>`, queue: service, deciders })

/**
 * Answers commands with the `Commands` of this process, until the scope closes: then it takes no
 * more, and those under way get their answers. What is not done within 5 s goes to another host.
 */
export const answerCommands = Effect.fnUntraced(function* (
  connection: NatsConnection,
  serving: Serving,
) {
  const carryOut = answerOf(yield* Commands, serving)
  const { inbox = () => core_inbox } = serving
  const under_way = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(under_way)<never>()
  let count = 0
  let warned_at = Number.NEGATIVE_INFINITY

  // No inbox could receive the answer, so nothing is carried out either.
  const ignore = ({ subject }: Msg) => {
    if (performance.now() - warned_at < warning_ms) return
    warned_at = performance.now()
    const where = inbox(subject)
    run(Effect.logWarning(`Ignored a request on ${subject}: its reply subject is not in ${where}.`))
  }
  const respond = (message: Msg, reply: Reply) =>
    sendResponse(connection, inbox(message.subject), message, encode(reply))
  const work = (message: Msg) =>
    Effect.map(carryOut(message), (reply) => respond(message, reply)).pipe(
      // The host ends before it is done: another goes on with it, under the same id.
      Effect.onInterrupt(() => Effect.sync(() => respond(message, { busy: true }))),
      Effect.ensuring(Effect.sync(() => count--)),
    )

  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(serving.subject, {
        queue: serving.queue,
        callback: (error, message) => {
          if (error !== null) return
          if (responseSubject(inbox(message.subject), message) === undefined) return ignore(message)
          if (count >= under_way_max) return respond(message, { busy: true })
          count++
          run(work(message))
        },
      }),
    ),
    Effect.fnUntraced(function* (subscription) {
      const wait_ms = yield* (yield* StopDeadline).part(ending_ms_max)
      yield* Effect.tryPromise({ try: () => subscription.drain(), catch: String }).pipe(
        // A connection that is gone has nothing to drain.
        Effect.ignore,
        Effect.andThen(FiberSet.awaitEmpty(under_way)),
        Effect.timeoutOption(wait_ms),
      )
    }),
  )
})

/** A rejection is an answer of one of the deciders asked: the one whose schema it fits. */
const rejected = (addressed: ReadonlyArray<Addressed<unknown>>, failure: unknown): Reply => {
  for (const { to } of addressed) {
    if (Schema.is(to.rejection)(failure)) {
      return { rejection: Schema.encodeUnknownSync(to.rejection)(failure), of: to.name }
    }
  }
  throw new Error(`No decider owns the rejection ${String(failure)}`)
}
