/**
 * Decides when our own nats-server must be restarted although it still runs. After a failed write
 * nats-server 2.15 accepts and acknowledges no message of that stream until it is restarted, even
 * if the disk has free space again.
 */
import { statfs } from "node:fs/promises"
import { connect } from "node:net"
import { Deferred, Effect } from "effect"

/** Free bytes required for a restart: several blocks of a stream (8 MB each). */
const free_bytes_min = 32 * 1024 * 1024

/** Milliseconds between checks of the disk. */
const poll_ms = 1_000

/** Milliseconds between restarts after failed writes: doubled up to the maximum. */
const pause_ms_min = 1_000
const pause_ms_max = 60_000

/** A server that ran this long in milliseconds without a failed write was stable. */
const stable_ms = 120_000

/** Liveness check: how long a server may be silent. */
export interface Liveness {
  /** Milliseconds between probe connections, and the timeout of each. */
  readonly ping_ms: number
  readonly probe_ms_max: number
  /** Consecutive probes without a response. */
  readonly unanswered_max: number
}

/**
 * More than a minute, which is longer than pauses of a busy machine. Killing the server loses no
 * acknowledged data.
 */
export const liveness_default: Liveness = {
  ping_ms: 10_000,
  probe_ms_max: 5_000,
  unanswered_max: 6,
}

/** nats-server 2.15 logs this when it disables writes to a store until the next start. */
const critical = /critical write error|will be DISABLED/i

/** The failure reported in a line of nats-server's log; undefined for any other line. */
const criticalIn = (line: string): string | undefined =>
  critical.test(line) ? (/: ([^:/]+)$/.exec(line)?.[1] ?? "JetStream is disabled") : undefined

/** Free bytes of the disk; 0 if the folder cannot be read. */
const freeBytes = (folder: string) =>
  Effect.promise(() =>
    statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => 0,
    ),
  )

export interface Recovery {
  /** Why the server accepts no commits although it runs; undefined while it does. */
  readonly problem: () => string | undefined
  /** Processes one line of the server's log. */
  readonly onLine: (line: string) => void
  /** Resets the state for a server that has just started. */
  readonly onStart: () => void
  /** Completes with the reason for a restart, once a restart would help. */
  readonly isDue: Effect.Effect<string>
}

/** Tracks write failures of the successive servers on this folder. */
export const newRecovery = (folder: string, now: () => number): Recovery => {
  let failed = Deferred.makeUnsafe<string>()
  let why: string | undefined
  let began_ms = now()
  let pause_ms = pause_ms_min
  return {
    problem: () => why,
    onLine: (line) => {
      const found = criticalIn(line)
      if (found === undefined || why !== undefined) return
      why = `nats-server could not write to ${folder}: ${found}`
      Deferred.doneUnsafe(failed, Effect.succeed(found))
    },
    onStart: () => {
      failed = Deferred.makeUnsafe()
      why = undefined
      began_ms = now()
    },
    isDue: Effect.gen(function* () {
      const found = yield* Deferred.await(failed)
      pause_ms = now() - began_ms > stable_ms ? pause_ms_min : Math.min(2 * pause_ms, pause_ms_max)
      yield* Effect.logError(
        `nats-server could not write to ${folder} (${found}): commits are rejected until it is ` +
          `restarted, once ${free_bytes_min / 1024 ** 2} MB are free there.`,
      )
      yield* Effect.sleep(pause_ms)
      yield* freeBytes(folder).pipe(
        Effect.tap((free) => (free < free_bytes_min ? Effect.sleep(poll_ms) : Effect.void)),
        Effect.repeat({ until: (free) => free >= free_bytes_min }),
      )
      return `a write failed: ${found}; the disk has room again`
    }),
  }
}

/** Whether a server sends its greeting to a new connection in time. */
const isAlive = (port: number, probe_ms_max: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect({ host: "127.0.0.1", port })
    const end = (is_answered: boolean) => {
      socket.destroy()
      resume(Effect.succeed(is_answered))
    }
    socket.setTimeout(probe_ms_max, () => end(false))
    socket.once("data", () => end(true))
    socket.once("error", () => end(false))
    return Effect.sync(() => socket.destroy())
  })

/** Completes once the server on this port has failed the liveness check. */
export const unresponsive = Effect.fnUntraced(function* (
  port: number,
  { ping_ms, probe_ms_max, unanswered_max }: Liveness,
) {
  for (let unanswered = 0; unanswered < unanswered_max; ) {
    yield* Effect.sleep(ping_ms)
    unanswered = (yield* isAlive(port, probe_ms_max)) ? 0 : unanswered + 1
  }
  return `it did not respond for ${(unanswered_max * ping_ms) / 1000} s`
})
