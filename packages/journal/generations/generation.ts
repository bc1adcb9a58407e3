/**
 * Generations of the log: streams of JetStream that follow one another.
 *
 * A generation begins with a copy of each aggregate's last commit, byte for byte, so that loading,
 * the hash chain and the command ids continue. The copies take the sequences up to the last
 * position of the previous generation, so each commit keeps its position and new commits continue
 * from there. A copy's header holds the position of its commit.
 *
 * A generation is current from its first commit that is not a copy; until then the previous one is.
 */
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream"
import type { MsgHdrs } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"

/** The header of a copy: the position of the original commit. */
export const position_header = "Almanac-Position"

/** Metadata keys of a stream. */
const base_key = "almanac-base"
const ended_key = "almanac-ended"

/** Metadata key of a log while it is being restored: the id of the backup. */
export const restoring_key = "almanac-restoring"

/** The streams cannot be listed, or were not created by this program. */
export class GenerationsUnknown extends Schema.TaggedError<GenerationsUnknown>()(
  "GenerationsUnknown",
  { message: Schema.String },
) {}

export interface Generation {
  /** 1, 2, 3, … */
  readonly number: number
  readonly stream: string
  /** First token of its subjects, unique to the stream. */
  readonly head: string
  /** The last position of the previous generation; 0 for the first. */
  readonly base: number
  /** Number of copies at its beginning. */
  readonly copies: number
}

/** The first generation of a log. */
export const firstGeneration = (name: string): Generation => ({
  number: 1,
  stream: name,
  head: "commit",
  base: 0,
  copies: 0,
})

/** The generation that follows, after `base` commits with `copies` aggregates. */
export const nextGeneration = (
  name: string,
  { number }: Generation,
  base: number,
  copies: number,
): Generation => ({
  number: number + 1,
  base,
  copies,
  stream: `${name}_${number + 1}`,
  head: `commit-${number + 1}`,
})

/** Options of a generation's stream in addition to those of every log. */
export const generationConfig = ({ number, base, copies }: Generation) =>
  number === 1 ? {} : { first_seq: base - copies + 1, metadata: { [base_key]: String(base) } }

/**
 * A stream that takes the first generation's name once that has ended: a release without support
 * for generations fails on the mismatch instead of starting a new log.
 */
export const endedMark = (name: string) => ({
  name,
  description: "This log continues in a later generation.",
  subjects: [`${name}.ended`],
  metadata: { [ended_key]: "true" },
})

/** The position of the commit in a message. */
export const positionOf = (base: number, sequence: number, headers: MsgHdrs | undefined) => {
  if (sequence > base) return sequence
  const position = Number(headers?.get(position_header))
  if (Number.isSafeInteger(position) && position > 0) return position
  throw new Error(`The copy at ${sequence} has no position.`)
}

const generationOf = (name: string, { config }: StreamInfo): Generation | undefined => {
  if (config.metadata?.[ended_key] !== undefined) return undefined
  if (config.name === name) return firstGeneration(name)
  const number = Number(config.name.slice(name.length + 1))
  const base = Number(config.metadata?.[base_key])
  if (!Number.isSafeInteger(number) || !Number.isSafeInteger(base)) return undefined
  const first = config.first_seq ?? 1
  return nextGeneration(
    name,
    { ...firstGeneration(name), number: number - 1 },
    base,
    base - first + 1,
  )
}

const isWhole = ({ base }: Generation, { state }: StreamInfo) => base === 0 || state.last_seq > base

/**
 * Finds the current generation, and streams of others: of an older one that is archived, or of a
 * newer one that is incomplete.
 */
export const findGenerations = Effect.fnUntraced(function* (jsm: JetStreamManager, name: string) {
  const infos = yield* Effect.tryPromise({
    try: async () => {
      const found: Array<StreamInfo> = []
      for await (const info of jsm.streams.list()) {
        if (info.config.name === name || info.config.name.startsWith(`${name}_`)) found.push(info)
      }
      return found
    },
    catch: (cause) =>
      new GenerationsUnknown({ message: `The log's streams cannot be listed: ${String(cause)}` }),
  })
  if (infos.some(({ config }) => config.metadata?.[restoring_key] !== undefined)) {
    const message = "A restore of this log was not finished: repeat restore-state."
    return yield* new GenerationsUnknown({ message })
  }
  const known = infos.flatMap((info) => {
    const generation = generationOf(name, info)
    return generation === undefined ? [] : [{ generation, is_whole: isWhole(generation, info) }]
  })
  const [current = firstGeneration(name)] = known
    .filter(({ is_whole }) => is_whole)
    .map(({ generation }) => generation)
    .sort((one, other) => other.number - one.number)
  const others = known.map(({ generation }) => generation)
  const has_ended = infos.some(({ config }) => config.metadata?.[ended_key] !== undefined)
  return {
    current,
    others: others.filter(({ stream }) => stream !== current.stream),
    /** The first generation has ended, and no later one has a stream. */
    is_gone: has_ended && current.number === 1,
  }
})
