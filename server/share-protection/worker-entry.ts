/**
 * Entry for agents that are started by hand: an agent requests a user of its own with the server's
 * own login, and connects as that user afterwards.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Effect, FiberSet, Schema } from "effect"
import { type WorkerUser, workerUser } from "#adapters/share-protection/worker-users.ts"
import { answer, BusUserRefused, type BusUsers, core_inbox } from "#bus"
import { WorkerId } from "#schemas/share-protection/id.ts"

const subject = "worker-users.admit"

/** A server that is there answers in a few. */
const answer_ms_max = 5_000

const Asked = Schema.fromJsonString(
  Schema.Struct({ worker_id: WorkerId, public_key: Schema.String }),
)
/** Empty: the worker is let in. */
const Refused = Schema.fromJsonString(Schema.Struct({ why: Schema.String }))

/** Admits workers at the request of a process that has the server's own login. */
export const serveEntry = Effect.fnUntraced(function* (
  connection: NatsConnection,
  users: BusUsers,
) {
  const run = yield* FiberSet.makeRuntime<never>()
  const answered = (message: Msg) =>
    Schema.decodeEffect(Asked)(message.string()).pipe(
      Effect.flatMap((worker) => users.admit(workerUser(worker))),
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

/** Requests a user for this worker. Fails with BusUserRefused. */
export const askEntry = Effect.fnUntraced(function* (
  connection: NatsConnection,
  worker: WorkerUser,
) {
  const text = Schema.encodeSync(Asked)(worker)
  const message = yield* Effect.tryPromise({
    try: () => connection.request(subject, text, { timeout: answer_ms_max }),
    catch: (cause) => new BusUserRefused({ message: `The server does not answer: ${cause}` }),
  })
  const { why } = yield* Effect.orDie(Schema.decodeEffect(Refused)(message.string()))
  if (why !== "") return yield* new BusUserRefused({ message: why })
})
