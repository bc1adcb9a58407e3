/** The log over all its generations: the stream of the newest, and the files of those before. */
import { Effect, Layer, Option, Stream } from "effect"
import { ensureStream, NatsConnection } from "#bus"
import { Log, type Part } from "#events/log.ts"
import { absentLog } from "../guard/guarded-log.ts"
import { checkAbsent, LogWatch } from "../guard/watch.ts"
import { type LogOptions, logJetStream } from "../jetstream/jetstream.ts"
import { readArchive } from "./archive.ts"
import { endedMark, findGenerations, type Generation } from "./generation.ts"

export interface GenerationsOptions {
  /** The name of the first generation's stream, which those of the others begin with. */
  readonly name: string
  /** Where the files of generations are that are over. */
  readonly folder: string
  /** Copies in a cluster. */
  readonly replicas: number
  readonly as_it_is?: LogOptions["as_it_is"]
}

/** What of a generation's log is asked of JetStream. */
export const optionsOf = (
  { folder, replicas, as_it_is }: GenerationsOptions,
  generation: Generation,
): LogOptions => {
  const { number, stream, head } = generation
  if (number === 1) return { stream, head, replicas, as_it_is }
  const before = Array.from({ length: number - 1 }, (_, i) => i + 1)
  const read = (part: Part, after: number) =>
    Stream.flatMap(Stream.fromIterable(before), (one) => readArchive(folder, one, part, after))
  return { stream, head, replicas, as_it_is, earlier: { generation, read } }
}

/** The log in its newest generation that is whole; made where there is none. */
export const logGenerations = (options: GenerationsOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const { current, others, is_gone } = yield* findGenerations(jsm, options.name)
      const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
      if (is_gone && watch !== undefined) {
        yield* checkAbsent(watch)
        if (watch.trouble() !== undefined) return Layer.succeed(Log, absentLog(watch))
      }
      // Who removed the first one may have been killed before saying so.
      if (options.as_it_is !== true && current.number > 1 && others.length === 0) {
        yield* ensureStream(jsm, endedMark(options.name))
      }
      return logJetStream(optionsOf(options, current))
    }),
  )
