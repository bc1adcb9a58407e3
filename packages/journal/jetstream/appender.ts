/**
 * Group commit: commands that arrive during a write share the next one.
 *
 * There is one write at a time, so a lone caller never waits for others, and many callers share
 * one disk sync.
 */
import { Result } from "effect"
import type { Link } from "#bus"
import { isAbsent, isLeaderless } from "#bus"
import type { Encoded } from "../commits/codec.ts"
import { appendFailure, isRefused } from "./failure.ts"
import type { Pace } from "./pace.ts"
import { type AppendResult, type Command, commandQueue } from "./queue.ts"
import { append_timeout_ms, type Write } from "./write.ts"

/** Milliseconds between attempts while the stream is missing: startup takes 11 to 90 ms. */
const absent_pause_ms = 20

export interface AppenderOptions {
  readonly write: Write
  readonly link: Link
  readonly pace: Pace
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/**
 * Appends commits and calls back with the result. The returned function withdraws them if they have
 * not been sent yet.
 */
export type Appender = (
  commits: ReadonlyArray<Encoded>,
  resolve: (result: AppendResult) => void,
) => () => void

export const appender = (options: AppenderOptions): Appender => {
  const { link, now } = options
  const queue = commandQueue(now)
  const { send, wasAbsent } = sender(options, queue)
  let busy = false

  const pump = async () => {
    busy = true
    while (!queue.isEmpty()) {
      if (wasAbsent() || !link.isUp()) {
        await new Promise((resolve) => setTimeout(resolve, absent_pause_ms))
        queue.expire("The log's server cannot be reached.")
      }
      if (!link.isUp()) continue
      queue.expire("The log's server is slow.")
      const group = queue.take()
      if (group.length > 0) await send(group)
    }
    busy = false
  }

  return (commits, resolve) => {
    const bytes = commits.reduce((sum, { bytes }) => sum + bytes.length, 0)
    const command = { commits, bytes, due: now() + append_timeout_ms, resolve }
    queue.add(command)
    if (!busy) void pump()
    return () => queue.withdraw(command)
  }
}

/** Sends a group in the faster mode; resolves its commands or returns them to the queue. */
const sender = ({ write, pace, now }: AppenderOptions, queue: ReturnType<typeof commandQueue>) => {
  /** Whether no server received the last group, which is then queued again. */
  let is_absent = false
  const isNotReceived = (cause: unknown) => isAbsent(cause) || isLeaderless(cause)

  const settle = (command: Command, result: Result.Result<ReadonlyArray<number>, unknown>) => {
    if (Result.isSuccess(result)) queue.recordPositions(command, result.success)
    command.resolve(Result.mapError(result, appendFailure))
  }

  const requeue = (group: ReadonlyArray<Command>) => {
    is_absent = true
    queue.putBack(group)
  }

  const writeAlone = async (command: Command) => {
    const result = await write(command.commits)
    if (Result.isFailure(result) && isNotReceived(result.failure)) requeue([command])
    else settle(command, result)
  }

  const writeTogether = async (group: ReadonlyArray<Command>, commits: ReadonlyArray<Encoded>) => {
    const result = await write(commits)
    if (Result.isFailure(result)) {
      // A conflict fails only one caller, so each command is retried alone.
      if (isNotReceived(result.failure)) requeue(group)
      else if (isRefused(result.failure)) await Promise.all(group.map(writeAlone))
      else for (const command of group) settle(command, result)
      return
    }
    let at = 0
    for (const command of group) {
      const to = at + command.commits.length
      settle(command, Result.succeed(result.success.slice(at, to)))
      at = to
    }
  }

  const send = async (group: ReadonlyArray<Command>) => {
    is_absent = false
    const commits = group.flatMap(({ commits }) => commits)
    // A command of several commits needs a batch anyway, so the others join it.
    const mixed = commits.length > group.length
    const mode = mixed ? "batch" : pace.choose(commits.length)
    const since = now()
    if (group.length === 1 || mode === "alone") await Promise.all(group.map(writeAlone))
    else await writeTogether(group, commits)
    if (!mixed) pace.record(commits.length, mode, now() - since)
  }

  return { send, wasAbsent: () => is_absent }
}
