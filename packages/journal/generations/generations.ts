/** The log over all its generations: the newest is a stream, earlier ones are files. */
import { Effect, Layer, Option, Stream } from "effect"
import { ensureStream, NatsConnection } from "#bus"
import { Log, type Part } from "#events/log.ts"
import { absentLog } from "../guard/guarded-log.ts"
import { checkAbsent, LogWatch } from "../guard/watch.ts"
import { type LogOptions, logJetStream } from "../jetstream/jetstream.ts"
import { readArchive } from "./archive.ts"
import { endedMark, findGenerations, type Generation } from "./generation.ts"

export interface GenerationsOptions {
  /** The name of the first generation's stream, and the prefix of all later ones. */
  readonly name: string
  /** Folder of the archived generations. */
  readonly folder: string
  /** Copies in a cluster. */
  readonly replicas: number
  readonly read_only?: LogOptions["read_only"]
}

/** Options of a generation's stream. */
export const optionsOf = (
  { folder, replicas, read_only }: GenerationsOptions,
  generation: Generation,
): LogOptions => {
  const { number, stream, head } = generation
  if (number === 1) return { stream, head, replicas, read_only }
  const before = Array.from({ length: number - 1 }, (_, i) => i + 1)
  const read = (part: Part, after: number) =>
    Stream.flatMap(Stream.fromIterable(before), (one) => readArchive(folder, one, part, after))
  return { stream, head, replicas, read_only, earlier: { generation, read } }
}

/** The log in its newest complete generation; created if there is none. */
export const logGenerations = (options: GenerationsOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const { current, others, is_gone } = yield* findGenerations(jsm, options.name)
      const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
      if (is_gone && watch !== undefined) {
        yield* checkAbsent(watch)
        if (watch.problem() !== undefined) return Layer.succeed(Log, absentLog(watch))
      }
      // A process that removed the first stream may have been killed before it created the marker.
      if (options.read_only !== true && current.number > 1 && others.length === 0) {
        yield* ensureStream(jsm, endedMark(options.name))
      }
      return logJetStream(optionsOf(options, current))
    }),
  )
