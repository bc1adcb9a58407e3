/**
 * A user of the bus for each worker, limited to the worker's own subjects: it can ask for what its
 * jobs come to, say that it lives, and hear its orders, and nothing else. It is known by a public
 * key, so that nothing secret of it is ever in a file.
 *
 * Source: DECISIONS, document 2, workers.
 */
import { nkeys } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import type { BusUser } from "#bus"
import type { WorkerId } from "#schemas/share-protection/id.ts"

/** Where a worker's commands go. */
export const commandSubject = (worker_id: WorkerId) => `worker.${worker_id}.command`

/** Where a worker is asked something: `offer` or `cancel`. */
export const agentSubject = (worker_id: WorkerId, what: string) => `agent.${worker_id}.${what}`

/** Where a worker says that it lives. */
export const beatSubject = (worker_id: WorkerId) => `live.share-protection.worker.${worker_id}`

/** First token of the subjects that answers to a worker come to: out of every other's reach. */
export const inboxOf = (worker_id: WorkerId) => `_INBOX_${worker_id}`

/** An answer to an order that comes later than this is not heard, as a duration of nats-server. */
const answer_time_max = "10m"

export interface WorkerUser {
  readonly worker_id: WorkerId
  /** An nkey's: `U` and 55 letters and digits. */
  readonly public_key: string
}

/** A new pair of keys: the public one is shown, by the seed its holder proves to be it. */
export const newWorkerKeys = Effect.sync(() => {
  const pair = nkeys.createUser()
  const seed = Redacted.make(Buffer.from(pair.getSeed()).toString())
  return { public_key: pair.getPublicKey(), seed }
})

/** The user of a worker, as nats.conf has it. */
export const workerUser = ({ worker_id, public_key }: WorkerUser): BusUser => {
  const publish = [commandSubject(worker_id), beatSubject(worker_id)]
  const subscribe = [agentSubject(worker_id, "*"), `${inboxOf(worker_id)}.>`]
  return {
    name: worker_id,
    public_key,
    permissions:
      `        publish: { allow: ${JSON.stringify(publish)} }\n` +
      `        subscribe: { allow: ${JSON.stringify(subscribe)} }\n` +
      `        allow_responses: { max: 1, expires: "${answer_time_max}" }`,
  }
}
