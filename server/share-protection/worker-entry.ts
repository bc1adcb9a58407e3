/**
 * The door for agents that are started by hand: one asks, with the server's own login, for a user
 * of its own, and is that user from then on.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Effect, FiberSet, Schema } from "effect"
import { answer, core_inbox } from "#adapters/bus/answer.ts"
import { WorkerUserRefused, type WorkerUsers } from "#adapters/share-protection/worker-users.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"

const subject = "worker-users.admit"

/** A server that is there answers in a few. */
const answer_ms_max = 5_000

const Asked = Schema.fromJsonString(
  Schema.Struct({ worker_id: WorkerId, public_key: Schema.String }),
)
/** Empty: the worker is let in. */
const Refused = Schema.fromJsonString(Schema.Struct({ why: Schema.String }))

/** Lets workers in whose start somebody asks for who has the server's login. */
export const serveEntry = Effect.fnUntraced(function* (
  connection: NatsConnection,
  users: WorkerUsers,
) {
  const run = yield* FiberSet.makeRuntime<never>()
  const answered = (message: Msg) =>
    Schema.decodeEffect(Asked)(message.string()).pipe(
      Effect.flatMap(users.admit),
      Effect.match({ onSuccess: () => "", onFailure: ({ message }) => message }),
      Effect.map((why) =>
        answer(connection, core_inbox, message, Schema.encodeSync(Refused)({ why })),
      ),
    )
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error === null) run(answered(message))
        },
      }),
    ),
    (subscription) => Effect.sync(() => subscription.unsubscribe()),
  )
})

/** Asks to be let in by this key. */
export const askEntry = Effect.fnUntraced(function* (
  connection: NatsConnection,
  asked: { readonly worker_id: WorkerId; readonly public_key: string },
) {
  const text = Schema.encodeSync(Asked)(asked)
  const message = yield* Effect.tryPromise({
    try: () => connection.request(subject, text, { timeout: answer_ms_max }),
    catch: (cause) => new WorkerUserRefused({ message: `The server does not answer: ${cause}` }),
  })
  const { why } = yield* Effect.orDie(Schema.decodeEffect(Refused)(message.string()))
  if (why !== "") return yield* new WorkerUserRefused({ message: why })
})
