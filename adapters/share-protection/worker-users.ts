/**
 * A user of the bus for each worker, limited to the worker's own subjects: it can ask for what its
 * jobs come to, say that it lives, and hear its orders, and nothing else. It is known by a public
 * key, so that nothing secret of it is ever in a file.
 *
 * Source: DECISIONS, document 2, workers.
 */
import { nkeys } from "@nats-io/transport-node"
import { Effect, Redacted, Schema } from "effect"
import type { WorkerId } from "#schemas/share-protection/id.ts"

/** Where a worker's commands go. */
export const commandSubject = (worker_id: WorkerId) => `worker.${worker_id}.command`

/** Where a worker is asked something: `offer` or `cancel`. */
export const agentSubject = (worker_id: WorkerId, what: string) => `agent.${worker_id}.${what}`

/** Where a worker says that it lives. */
export const beatSubject = (worker_id: WorkerId) => `live.share-protection.worker.${worker_id}`

/** First token of the subjects that answers to a worker come to: out of every other's reach. */
export const inboxOf = (worker_id: WorkerId) => `_INBOX_${worker_id}`

/** Users of workers at one server: far above the workers of a machine. */
const worker_users_max = 1000

/** An answer to an order that comes later than this is not heard, as a duration of nats-server. */
const answer_time_max = "10m"

export interface WorkerUser {
  readonly worker_id: WorkerId
  /** An nkey's: `U` and 55 letters and digits. */
  readonly public_key: string
}

/** The bus takes no user more, or is not ours to change. */
export class WorkerUserRefused extends Schema.TaggedError<WorkerUserRefused>()(
  "WorkerUserRefused",
  { message: Schema.String },
) {}

/** The users of workers at the server that this process runs. */
export interface WorkerUsers {
  /** Lets the worker in by this key alone; its connections by another end. */
  readonly admit: (user: WorkerUser) => Effect.Effect<void, WorkerUserRefused>
  /** Ends the worker's connections; without effect where it has none. */
  readonly dismiss: (worker_id: WorkerId) => Effect.Effect<void>
}

/** A new pair of keys: the public one is shown, by the seed its holder proves to be it. */
export const newWorkerKeys = Effect.sync(() => {
  const pair = nkeys.createUser()
  const seed = Redacted.make(Buffer.from(pair.getSeed()).toString())
  return { public_key: pair.getPublicKey(), seed }
})

/** An nkey's public key of a user: nothing else may come into the server's configuration. */
const is_public_key = /^U[A-Z2-7]{55}$/

/** Keeps in mind who may come in; `apply` makes the server know it. */
export const workerUsers = (
  apply: (users: ReadonlyArray<WorkerUser>) => Effect.Effect<void, WorkerUserRefused>,
): WorkerUsers => {
  const users = new Map<WorkerId, WorkerUser>()
  const applied = Effect.suspend(() => apply([...users.values()]))
  const refused = (message: string) => Effect.fail(new WorkerUserRefused({ message }))
  return {
    admit: (user) =>
      Effect.suspend(() => {
        const { worker_id, public_key } = user
        if (users.get(worker_id)?.public_key === public_key) return Effect.void
        if (!is_public_key.test(public_key)) return refused("That is no user's public key.")
        if (!users.has(worker_id) && users.size >= worker_users_max) {
          return refused(`The bus has ${worker_users_max} workers: it takes no more.`)
        }
        const before = users.get(worker_id)
        users.set(worker_id, user)
        const undo = Effect.sync(() => {
          if (before === undefined) users.delete(worker_id)
          else users.set(worker_id, before)
        })
        return Effect.tapError(applied, () => undo)
      }),
    dismiss: (worker_id) =>
      Effect.suspend(() => (users.delete(worker_id) ? applied : Effect.void)).pipe(
        Effect.catch(({ message }) => Effect.logWarning(`A worker's user stays: ${message}`)),
      ),
  }
}

/** The user as nats.conf has it. */
export const workerUserText = ({ worker_id, public_key }: WorkerUser) => {
  const publish = [commandSubject(worker_id), beatSubject(worker_id)]
  const subscribe = [agentSubject(worker_id, "*"), `${inboxOf(worker_id)}.>`]
  return (
    `{ nkey: ${public_key}, permissions: {\n` +
    `        publish: { allow: ${JSON.stringify(publish)} }\n` +
    `        subscribe: { allow: ${JSON.stringify(subscribe)} }\n` +
    `        allow_responses: { max: 1, expires: "${answer_time_max}" } } }`
  )
}
