/** Writes to a JetStream stream with version checks: one commit alone, or several as one batch. */
import { JetStreamApiError } from "@nats-io/jetstream"
import { headers, type Msg, type NatsConnection, nuid } from "@nats-io/transport-node"
import { Result } from "effect"
import type { SendRequest } from "#bus"
import type { Encoded } from "../commits/codec.ts"
import { position_header } from "../generations/generation.ts"

/** Timeout of one append in milliseconds: a disk whose sync takes longer is considered failed. */
export const append_timeout_ms = 5_000

/** Positions in order, or the error of the client or the server. It never rejects. */
export type Written = Promise<Result.Result<ReadonlyArray<number>, unknown>>

/** Writes all or nothing. */
export type Write = (commits: ReadonlyArray<Encoded>) => Written

/** The part of a connection that is used: a batch's messages are published without a response. */
type Publisher = Pick<NatsConnection, "publish">

/** The part of a response that is read. */
type Reply = Pick<Msg, "json">

type SendFor = (...args: Parameters<SendRequest>) => Promise<Reply>

/** Destination of commits. */
export interface Target {
  readonly stream: string
  /** First token of the subjects. */
  readonly head: string
}

/** Completes when the server responds, the connection is lost, or the request times out. */
export const writer =
  (connection: Publisher, ask: SendFor, target: Target): Write =>
  (commits) =>
    send(connection, ask, target, commits)
      .then((message) => Result.map(positionOf(message), (last) => positionsUpTo(commits, last)))
      // An invalid response fails too: otherwise the queue behind it would wait forever.
      .catch(Result.fail)

/**
 * Sends all messages of a batch and its commit in one tick: one round trip, and no batch stays open
 * (50 open batches block all others).
 */
const send = (
  connection: Publisher,
  ask: SendFor,
  { stream, head }: Target,
  commits: ReadonlyArray<Encoded>,
): Promise<Reply> => {
  const batch = nuid.next()
  try {
    for (const [i, commit] of commits.entries()) {
      const checks = headers()
      checks.set("Nats-Expected-Stream", stream)
      checks.set("Nats-Expected-Last-Subject-Sequence", `${commit.expected}`)
      if (commit.copy_of !== undefined) checks.set(position_header, `${commit.copy_of}`)
      if (commits.length > 1) {
        checks.set("Nats-Batch-Id", batch)
        checks.set("Nats-Batch-Sequence", `${i + 1}`)
      }
      const subject = `${head}.${commit.stream}`
      if (i === commits.length - 1) {
        if (commits.length > 1) checks.set("Nats-Batch-Commit", "1")
        return ask(subject, commit.bytes, checks)
      }
      connection.publish(subject, commit.bytes, { headers: checks })
    }
  } catch (cause) {
    return Promise.reject(cause)
  }
  return Promise.reject(new Error("No commits to write."))
}

interface Ack {
  readonly seq?: number
  readonly error?: {
    readonly code: number
    readonly err_code: number
    readonly description: string
  }
}

const positionOf = (message: Reply): Result.Result<number, unknown> => {
  const { seq, error } = message.json<Ack>()
  if (error) return Result.fail(new JetStreamApiError(error))
  return seq === undefined
    ? Result.fail(new Error("no response from JetStream"))
    : Result.succeed(seq)
}

/** A batch takes consecutive positions; the server returns the last. */
const positionsUpTo = (commits: ReadonlyArray<Encoded>, last: number) =>
  commits.map((_, i) => last - commits.length + 1 + i)
