/**
 * A bus user for each worker, limited to its own subjects: it can send commands, publish heartbeats
 * and receive orders. It is identified by a public key, so that no file contains a secret.
 *
 * Source: DECISIONS, document 2, workers.
 */
import { nkeys } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import type { BusUser } from "#bus"
import type { WorkerId } from "#schemas/share-protection/id.ts"

/** Subject of a worker's commands. */
export const commandSubject = (worker_id: WorkerId) => `worker.${worker_id}.command`

/** Subject of requests to a worker: `offer` or `cancel`. */
export const agentSubject = (worker_id: WorkerId, operation: string) =>
  `agent.${worker_id}.${operation}`

/** Subject of a worker's heartbeats. */
export const heartbeatSubject = (worker_id: WorkerId) => `live.share-protection.worker.${worker_id}`

/** Inbox prefix for responses to a worker, which no other user can access. */
export const inboxOf = (worker_id: WorkerId) => `_INBOX_${worker_id}`

/** How long a worker may take to respond to an order, as a duration of nats-server. */
const response_time_max = "10m"

export interface WorkerUser {
  readonly worker_id: WorkerId
  /** An nkey: `U` and 55 letters and digits. */
  readonly public_key: string
}

/** Creates a key pair: the public key identifies the worker, and the seed proves its identity. */
export const newWorkerKeys = Effect.sync(() => {
  const pair = nkeys.createUser()
  const seed = Redacted.make(Buffer.from(pair.getSeed()).toString())
  return { public_key: pair.getPublicKey(), seed }
})

/** The worker's user for nats.conf. */
export const workerUser = ({ worker_id, public_key }: WorkerUser): BusUser => {
  const publish = [commandSubject(worker_id), heartbeatSubject(worker_id)]
  const subscribe = [agentSubject(worker_id, "*"), `${inboxOf(worker_id)}.>`]
  return {
    name: worker_id,
    public_key,
    permissions:
      `        publish: { allow: ${JSON.stringify(publish)} }\n` +
      `        subscribe: { allow: ${JSON.stringify(subscribe)} }\n` +
      `        allow_responses: { max: 1, expires: "${response_time_max}" }`,
  }
}
