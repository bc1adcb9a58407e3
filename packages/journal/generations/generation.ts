/**
 * Generations of the log: streams of JetStream that follow one another.
 *
 * A generation begins with a copy of each aggregate's last commit, byte for byte, so that loading,
 * the chain of hashes and the ids of commands go on. The copies take the sequences up to the last
 * position of the log before, of which there are enough: so each commit keeps its position, and the
 * next one takes the next. A copy's header tells the position that the commit has.
 *
 * A generation counts from its first commit that is no copy: until then the one before is the log.
 */
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream"
import type { MsgHdrs } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"

/** The header of a copy: the position of the commit that it is a copy of. */
export const position_header = "Almanac-Position"

/** What a stream says of itself in its metadata. */
const base_key = "almanac-base"
const ended_key = "almanac-ended"

/** The metadata of a log that is being restored, until all of it is there: the backup's id. */
export const restoring_key = "almanac-restoring"

/** The streams cannot be listed, or are not what this program makes. */
export class GenerationsUnknown extends Schema.TaggedError<GenerationsUnknown>()(
  "GenerationsUnknown",
  { message: Schema.String },
) {}

export interface Generation {
  /** 1, 2, 3, … */
  readonly number: number
  readonly stream: string
  /** First token of its subjects: two streams share none. */
  readonly head: string
  /** The last position of the generation before; 0 for the first. */
  readonly base: number
  /** Copies that it begins with. */
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

/** What a generation's stream is asked for beyond what every log's stream is. */
export const generationConfig = ({ number, base, copies }: Generation) =>
  number === 1 ? {} : { first_seq: base - copies + 1, metadata: { [base_key]: String(base) } }

/**
 * What has the first generation's name once that is over: a release that knows no generations finds
 * another stream than it asks for, and does not begin a log of its own.
 */
export const endedMark = (name: string) => ({
  name,
  description: "This log goes on in a later generation.",
  subjects: [`${name}.ended`],
  metadata: { [ended_key]: "true" },
})

/** The position of the commit in a message. */
export const placeOf = (base: number, sequence: number, headers: MsgHdrs | undefined) => {
  if (sequence > base) return sequence
  const position = Number(headers?.get(position_header))
  if (Number.isSafeInteger(position) && position > 0) return position
  throw new Error(`The copy at ${sequence} does not tell its position.`)
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
 * The generation that is the log now, and streams of others: of an older one that is archived, or
 * of a newer one that was begun and is not whole.
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
    const message = "A restore of this log was begun and not finished: repeat restore-state."
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
    /** The first generation is over, and the stream of no later one is there. */
    is_gone: has_ended && current.number === 1,
  }
})
