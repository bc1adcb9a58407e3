/**
 * Commands over the bus: request and reply on `command.<service>.<aggregate>.<id>`.
 *
 * Hosts of one service form a queue group, so any of them serves. The version check of the log
 * keeps two hosts from contradicting each other, and the command's id makes a second try safe.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Effect, Layer, Result, Schedule, Schema } from "effect"
import { type Addressed, Commands, streamOf, Unavailable } from "#actors/commands.ts"
import type { AnyDecider } from "#actors/decider.ts"
import type { Origin } from "#events/log.ts"

/** How long one try waits for its answer, in milliseconds: the log's own limit and a margin. */
const answer_ms_max = 12_000

/** Tries in all, each under the same command id. */
const attempts_max = 3

interface Request {
  readonly origin: Origin
  readonly commands: ReadonlyArray<{
    readonly name: string
    readonly id: string
    readonly command: unknown
  }>
}

type Reply =
  | { readonly position: number }
  | { readonly rejection: unknown; readonly of: string }
  | { readonly unavailable: string }

const encode = (value: unknown) => JSON.stringify(value)

/** Sends each command to whichever host of its service is free. */
export const remoteCommands = (connection: NatsConnection) =>
  Layer.succeed(
    Commands,
    Commands.of({
      send: Effect.fn("Commands.send")(function* <Rejection>(
        origin: Origin,
        ...commands: ReadonlyArray<Addressed<Rejection>>
      ) {
        const [first] = commands
        if (first === undefined) return yield* new Unavailable({ detail: "There is no command." })
        const request: Request = {
          origin,
          commands: commands.map(({ to, id, command }) => ({
            name: to.name,
            id,
            command: Schema.encodeUnknownSync(to.command)(command),
          })),
        }
        const reply: Reply = yield* Effect.tryPromise({
          try: () =>
            connection.request(`command.${streamOf(first)}`, encode(request), {
              timeout: answer_ms_max,
            }),
          catch: (error) => new Unavailable({ detail: `No host answered: ${String(error)}` }),
        }).pipe(
          Effect.retry({ times: attempts_max - 1, schedule: Schedule.exponential(100) }),
          Effect.map((message) => message.json<Reply>()),
        )
        if ("position" in reply) return reply.position
        if ("unavailable" in reply) return yield* new Unavailable({ detail: reply.unavailable })
        const { to } = commands.find(({ to }) => to.name === reply.of) ?? first
        return yield* Effect.fail(Schema.decodeUnknownSync(to.rejection)(reply.rejection))
      }),
    }),
  )

/** Answers the commands of a service with the `Commands` of this process. */
export const serveCommands = Effect.fnUntraced(function* (
  connection: NatsConnection,
  service: string,
  deciders: ReadonlyArray<AnyDecider>,
) {
  const commands = yield* Commands
  const kinds = new Map(deciders.map((decider) => [decider.name, decider]))

  const answer = Effect.fnUntraced(
    function* (message: Msg) {
      const { origin, commands: named } = message.json<Request>()
      const addressed = named.map(({ name, id, command }) => {
        const to = kinds.get(name)
        if (to === undefined) throw new Error(`${service} has no ${name}`)
        return { to, id, command: Schema.decodeUnknownSync(to.command)(command) }
      })
      const sent = yield* Effect.result(commands.send(origin, ...addressed))
      if (Result.isSuccess(sent)) return { position: sent.success } satisfies Reply
      const { failure } = sent
      if (failure instanceof Unavailable) return { unavailable: failure.detail } satisfies Reply
      return rejected(addressed, failure)
    },
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("A command failed.", defect), {
        unavailable: "The host failed; its log says why.",
      } satisfies Reply),
    ),
  )

  const run = Effect.runForkWith(yield* Effect.context<never>())
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(`command.${service}.>`, {
        queue: service,
        callback: (error, message) => {
          if (error !== null) return
          run(Effect.map(answer(message), (reply) => message.respond(encode(reply))))
        },
      }),
    ),
    (subscription) => Effect.promise(() => subscription.drain()),
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
