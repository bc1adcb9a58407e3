/** Queue of commands to be written; selects the commands of the next group. */
import { Result } from "effect"
import { LogUnavailable, VersionConflict } from "#events/log.ts"
import type { Encoded } from "../commits/codec.ts"
import type { AppendFailure } from "./failure.ts"

/** Maximum commits of one group; the server accepts 1,000 per batch. */
const group_commits_max = 256

/** Maximum bytes of one group: the server buffers a batch in memory until it is committed. */
const group_bytes_max = 4 * 1024 * 1024

/** Maximum queue length: one second at 10,000 commands per second. */
const queue_commands_max = 10_000

export type AppendResult = Result.Result<ReadonlyArray<number>, AppendFailure>

/** All commits of one command. They are always written together, in any group. */
export interface Command {
  readonly commits: ReadonlyArray<Encoded>
  readonly bytes: number
  /** Deadline for sending it, in milliseconds of the monotonic clock. */
  readonly due: number
  readonly resolve: (result: AppendResult) => void
}

export const commandQueue = (now: () => number) => {
  let queue: Array<Command> = []
  /** Versions after the last group, by stream: a command that expects less conflicts already. */
  let written = new Map<string, number>()

  const staleCommit = ({ commits }: Command) =>
    commits.find(({ stream, expected }) => expected < (written.get(stream) ?? 0))

  return {
    isEmpty: () => queue.length === 0,

    /** Rejects the command if the queue is full. */
    add: (command: Command) => {
      if (queue.length < queue_commands_max) queue.push(command)
      else
        command.resolve(
          unavailable(`The queue already has the maximum of ${queue_commands_max} commands.`),
        )
    },

    /** Returns commands that were taken but not written to the front of the queue. */
    putBack: (group: ReadonlyArray<Command>) => queue.unshift(...group),

    withdraw: (command: Command) => {
      queue = queue.filter((other) => other !== command)
    },

    recordPositions: ({ commits }: Command, positions: ReadonlyArray<number>) => {
      for (const [i, { stream }] of commits.entries()) written.set(stream, positions[i] ?? 0)
    },

    /** Fails commands past their deadline: they were never sent. */
    expire: (detail: string) => {
      const time = now()
      const late = queue.filter(({ due }) => due <= time)
      if (late.length > 0) queue = queue.filter(({ due }) => due > time)
      for (const { resolve } of late) resolve(unavailable(detail))
    },

    /** The next group, in order. Later commits of a stream wait for the result of earlier ones. */
    take: () => {
      const conflicting = queue.filter(staleCommit)
      const group: Array<Command> = []
      const rest: Array<Command> = []
      const streams = new Set<string>()
      const room = { commits: group_commits_max, bytes: group_bytes_max }
      for (const command of queue) {
        const { commits, bytes } = command
        if (staleCommit(command)) continue
        const fits = group.length === 0 || (commits.length <= room.commits && bytes <= room.bytes)
        if (fits && commits.every(({ stream }) => !streams.has(stream))) {
          group.push(command)
          room.commits -= commits.length
          room.bytes -= bytes
        } else rest.push(command)
        for (const { stream } of commits) streams.add(stream)
      }
      queue = rest
      for (const { resolve, commits } of conflicting) resolve(Result.fail(stale(commits)))
      written = new Map()
      return group
    },
  }
}

const unavailable = (detail: string): AppendResult => Result.fail(new LogUnavailable({ detail }))

const stale = (commits: ReadonlyArray<Encoded>) =>
  new VersionConflict({
    detail: `Another commit came first on ${commits.map(({ stream }) => stream).join(", ")}.`,
  })
