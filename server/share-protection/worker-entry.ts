/**
 * Admission of agents that are started by hand: an agent uses the server's login to request its own
 * user, and then connects as that user.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Effect, FiberSet, Schema } from "effect"
import { type WorkerUser, workerUser } from "#adapters/share-protection/worker-users.ts"
import { BusUserRefused, type BusUsers, core_inbox, sendResponse } from "#bus"
import { WorkerId } from "#schemas/share-protection/id.ts"

const subject = "worker-users.admit"

/** A running server responds within a few milliseconds. */
const answer_ms_max = 5_000

const Request = Schema.fromJsonString(
  Schema.Struct({ worker_id: WorkerId, public_key: Schema.String }),
)
/** An empty `why` means that the worker is admitted. */
const Response = Schema.fromJsonString(Schema.Struct({ why: Schema.String }))

/** Admits workers on request of a process with the server's login. */
export const serveEntry = Effect.fnUntraced(function* (
  connection: NatsConnection,
  users: BusUsers,
) {
  const run = yield* FiberSet.makeRuntime<never>()
  const respond = (message: Msg) =>
    Schema.decodeEffect(Request)(message.string()).pipe(
      Effect.flatMap((worker) => users.admit(workerUser(worker))),
      Effect.match({ onSuccess: () => "", onFailure: ({ message }) => message }),
      Effect.map((why) =>
        sendResponse(connection, core_inbox, message, Schema.encodeSync(Response)({ why })),
      ),
    )
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error === null) run(respond(message))
        },
      }),
    ),
    (subscription) => Effect.sync(() => subscription.unsubscribe()),
  )
})

/** Requests a user for this worker. Fails with BusUserRefused. */
export const requestEntry = Effect.fnUntraced(function* (
  connection: NatsConnection,
  worker: WorkerUser,
) {
  const text = Schema.encodeSync(Request)(worker)
  const message = yield* Effect.tryPromise({
    try: () => connection.request(subject, text, { timeout: answer_ms_max }),
    catch: (cause) => new BusUserRefused({ message: `The server does not respond: ${cause}` }),
  })
  const { why } = yield* Effect.orDie(Schema.decodeEffect(Response)(message.string()))
  if (why !== "") return yield* new BusUserRefused({ message: why })
})
