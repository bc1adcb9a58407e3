/** Monitors the size of the log, and warns before it reaches its limit. */
import { statfs } from "node:fs/promises"
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream"
import { Effect, Layer, Metric, Schedule } from "effect"
import { LogStanding, warningOf } from "#actors/system/log-standing.ts"
import { NatsConnection } from "#bus"
import { findGenerations, readFailure } from "#journal"
import { gauge } from "#schemas/metric.ts"
import type { LogFigures } from "#schemas/system/audit.ts"

export interface StandingOptions {
  /** The name of the log's first generation. */
  readonly name: string
  /** Store folder of our own server; undefined if external. */
  readonly store: string | undefined
  /** Maximum disk usage of our own server in bytes. */
  readonly store_bytes_max: number
}

/** Interval between two checks in milliseconds: no log of ours fills within a minute. */
const check_ms = 60_000

const bytes_gauge = gauge(
  "almanac_log_bytes",
  "Stored size of the log's newest generation in bytes.",
)
const limit_gauge = gauge(
  "almanac_log_limit_bytes",
  "Maximum size of the log in bytes; 0: no known limit.",
)

const limitsOf = async (
  jsm: JetStreamManager,
  { config, state }: StreamInfo,
  { store, store_bytes_max }: StandingOptions,
) => {
  const { limits, storage } = await jsm.getAccountInfo()
  const limit = [config.max_bytes, limits.max_storage].filter((bytes) => bytes > 0)
  if (store !== undefined) {
    const { bavail, bsize } = await statfs(store)
    // All of our server's streams share its limit, and the disk is shared with other programs.
    const others = storage - state.bytes
    limit.push(store_bytes_max - others, state.bytes + bavail * bsize)
  }
  return limit.length === 0 ? null : Math.max(0, Math.min(...limit))
}

const figuresOf = async (
  jsm: JetStreamManager,
  generation: number,
  stream: string,
  options: StandingOptions,
): Promise<LogFigures> => {
  const info = await jsm.streams.info(stream)
  const { state } = info
  const limit_bytes = await limitsOf(jsm, info, options)
  return {
    generation,
    position: state.last_seq,
    aggregates: state.num_subjects ?? 0,
    bytes: state.bytes,
    limit_bytes,
    used_share: limit_bytes === null ? null : state.bytes / Math.max(1, limit_bytes),
  }
}

/** Checks the size once a minute until the layer is released; logs each warning once. */
export const logStanding = (options: StandingOptions) =>
  Layer.effect(
    LogStanding,
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const figures = findGenerations(jsm, options.name).pipe(
        Effect.flatMap(({ current: { number, stream } }) =>
          Effect.tryPromise({
            try: () => figuresOf(jsm, number, stream, options),
            catch: (cause) => cause,
          }),
        ),
        Effect.mapError(readFailure),
      )
      let warned_level = 0
      const check = Effect.gen(function* () {
        const current = yield* figures
        yield* Metric.update(bytes_gauge, current.bytes)
        yield* Metric.update(limit_gauge, current.limit_bytes ?? 0)
        const warning = warningOf(current)
        if (warning !== undefined && warning.passed > warned_level)
          yield* Effect.logWarning(warning.text)
        warned_level = warning?.passed ?? 0
      }).pipe(Effect.ignore)
      yield* Effect.forkScoped(Effect.repeat(check, Schedule.spaced(check_ms)))
      return LogStanding.of({ figures })
    }),
  )
