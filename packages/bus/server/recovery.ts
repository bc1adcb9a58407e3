/**
 * When a nats-server of our own has to be started again although it still runs. After a failed
 * write nats-server 2.15 takes no message into that stream, and answers none, until it is
 * restarted, also when the disk has room again.
 */
import { statfs } from "node:fs/promises"
import { connect } from "node:net"
import { Deferred, Effect } from "effect"

/** Free bytes with which a stopped server may start again: several blocks of a stream (8 MB). */
const free_bytes_min = 32 * 1024 * 1024

/** Milliseconds between two looks at the disk. */
const look_ms = 1_000

/** Milliseconds between two restarts for a failed write: doubled up to the second figure. */
const pause_ms_min = 1_000
const pause_ms_max = 60_000

/** A server that ran this long without a failed write was well, in milliseconds. */
const well_ms = 120_000

/** After how much silence a server hangs. */
export interface Patience {
  /** Milliseconds between two connections that ask whether it lives, and for its answer. */
  readonly ping_ms: number
  readonly answer_ms_max: number
  /** Connections in a row that are not answered. */
  readonly unanswered_max: number
}

/**
 * More than a minute, and longer than a busy machine pauses. One that is killed loses nothing
 * acknowledged.
 */
export const patience_default: Patience = {
  ping_ms: 10_000,
  answer_ms_max: 5_000,
  unanswered_max: 6,
}

/** What nats-server 2.15 logs when a store is closed to writes until the next start. */
const critical = /critical write error|will be DISABLED/i

/** What failed, as nats-server says it; undefined in a line about anything else. */
const criticalIn = (line: string): string | undefined =>
  critical.test(line) ? (/: ([^:/]+)$/.exec(line)?.[1] ?? "JetStream is disabled") : undefined

/** Free bytes of the disk; a folder that cannot be looked at has none. */
const freeOf = (folder: string) =>
  Effect.promise(() =>
    statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => 0,
    ),
  )

export interface Recovery {
  /** Why the server takes no commit although it runs; undefined while it does. */
  readonly trouble: () => string | undefined
  /** Reads each line that the server logs. */
  readonly heard: (line: string) => void
  /** Begins to watch a server that has just started. */
  readonly began: () => void
  /** Answers why the running server has to be started again, once that helps. */
  readonly isDue: Effect.Effect<string>
}

/** Watches the writes of the servers that run one after another over this folder. */
export const newRecovery = (folder: string, now: () => number): Recovery => {
  let failed = Deferred.makeUnsafe<string>()
  let why: string | undefined
  let began_ms = now()
  let pause_ms = pause_ms_min
  return {
    trouble: () => why,
    heard: (line) => {
      const found = criticalIn(line)
      if (found === undefined || why !== undefined) return
      why = `nats-server could not write to ${folder}: ${found}`
      Deferred.doneUnsafe(failed, Effect.succeed(found))
    },
    began: () => {
      failed = Deferred.makeUnsafe()
      why = undefined
      began_ms = now()
    },
    isDue: Effect.gen(function* () {
      const found = yield* Deferred.await(failed)
      pause_ms = now() - began_ms > well_ms ? pause_ms_min : Math.min(2 * pause_ms, pause_ms_max)
      yield* Effect.logError(
        `nats-server could not write to ${folder} (${found}): no commit is taken until it is ` +
          `started again, once ${free_bytes_min / 1024 ** 2} MB are free there.`,
      )
      yield* Effect.sleep(pause_ms)
      yield* freeOf(folder).pipe(
        Effect.tap((free) => (free < free_bytes_min ? Effect.sleep(look_ms) : Effect.void)),
        Effect.repeat({ until: (free) => free >= free_bytes_min }),
      )
      return `a write failed: ${found}; there is room now`
    }),
  }
}

/** Whether a server sends its greeting to a new connection in time. */
const answers = (port: number, answer_ms_max: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect({ host: "127.0.0.1", port })
    const end = (is_answered: boolean) => {
      socket.destroy()
      resume(Effect.succeed(is_answered))
    }
    socket.setTimeout(answer_ms_max, () => end(false))
    socket.once("data", () => end(true))
    socket.once("error", () => end(false))
    return Effect.sync(() => socket.destroy())
  })

/** Answers once the server on this port has not greeted anybody for as long as is waited. */
export const hangs = Effect.fnUntraced(function* (
  port: number,
  { ping_ms, answer_ms_max, unanswered_max }: Patience,
) {
  for (let unanswered = 0; unanswered < unanswered_max; ) {
    yield* Effect.sleep(ping_ms)
    unanswered = (yield* answers(port, answer_ms_max)) ? 0 : unanswered + 1
  }
  return `it did not answer for ${(unanswered_max * ping_ms) / 1000} s`
})
