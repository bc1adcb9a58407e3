/** Writes to a JetStream stream with version checks: one commit alone, or several as one batch. */
import { JetStreamApiError } from "@nats-io/jetstream"
import { headers, type Msg, type NatsConnection, nuid } from "@nats-io/transport-node"
import { Result } from "effect"
import type { Ask } from "#bus"
import type { Encoded } from "../commits/codec.ts"
import { position_header } from "../generations/generation.ts"

/** Milliseconds until an answer is given up: a disk that syncs slower than that is no disk. */
export const append_timeout_ms = 5_000

/** Positions in order, or what the client or the server said. It never rejects. */
export type Written = Promise<Result.Result<ReadonlyArray<number>, unknown>>

/** Writes all or nothing. */
export type Write = (commits: ReadonlyArray<Encoded>) => Written

/** What of a connection is used: a batch's parts go out without an answer. */
type Publisher = Pick<NatsConnection, "publish">

/** What of an answer is read. */
type Answer = Pick<Msg, "json">

type AskFor = (...asked: Parameters<Ask>) => Promise<Answer>

/** Where commits go. */
export interface Target {
  readonly stream: string
  /** First token of the subjects. */
  readonly head: string
}

/** Answers as soon as the server did, the connection was lost, or the time is over. */
export const writer =
  (connection: Publisher, ask: AskFor, target: Target): Write =>
  (commits) =>
    send(connection, ask, target, commits)
      .then((message) => Result.map(positionOf(message), (last) => places(commits, last)))
      // Also of an answer that is none: whoever waits behind it would wait for ever.
      .catch(Result.fail)

/**
 * All parts and the commit of a batch in one tick: one round trip, and no batch stays open (50
 * open ones block every other).
 */
const send = (
  connection: Publisher,
  ask: AskFor,
  { stream, head }: Target,
  commits: ReadonlyArray<Encoded>,
): Promise<Answer> => {
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
  return Promise.reject(new Error("There is nothing to write."))
}

interface Ack {
  readonly seq?: number
  readonly error?: {
    readonly code: number
    readonly err_code: number
    readonly description: string
  }
}

const positionOf = (message: Answer): Result.Result<number, unknown> => {
  const { seq, error } = message.json<Ack>()
  if (error) return Result.fail(new JetStreamApiError(error))
  return seq === undefined ? Result.fail(new Error("no answer of JetStream")) : Result.succeed(seq)
}

/** A batch takes consecutive positions, of which the server tells the last. */
const places = (commits: ReadonlyArray<Encoded>, last: number) =>
  commits.map((_, i) => last - commits.length + 1 + i)
