/** The log in memory: for tests and for running a service without a bus. */
import { Effect, Layer, Option, Stream } from "effect"
import {
  CommitJudge,
  type Entry,
  isPartOf,
  isReadable,
  type Judge,
  Log,
  type Part,
  VersionConflict,
} from "#events/log.ts"
import { checked, decode, digest, type Encoded, encode, sha256 } from "./codec.ts"
import { lastReadable, readable, withReadableLasts } from "./readable.ts"

/** Maximum commits of one chunk. */
const chunk_commits_max = 500

interface Stored {
  readonly position: number
  readonly stream: string
  readonly bytes: Uint8Array
}

/** A log that starts empty and is discarded with its scope. */
export const logMemory = Layer.effect(
  Log,
  Effect.map(CommitJudge, (judge) => logOf(judge)),
)

/** Decodes a stored commit. */
type Read = (stored: Stored) => Entry

const logOf = (judge: Judge) => {
  const read: Read = ({ position, stream, bytes }) => decode(position, stream, bytes, judge)
  const commits: Array<Stored> = []
  const last_by_stream = new Map<string, Stored>()
  const waiting = new Set<() => void>()

  const store = ({ stream, bytes }: Encoded) => {
    const stored = { position: commits.length + 1, stream, bytes }
    commits.push(stored)
    last_by_stream.set(stream, stored)
    return { position: stored.position, hash: sha256(bytes) }
  }

  const { entries, followEntries } = reads(commits, waiting, read)
  const lastBefore = lastReadable(entries)
  const tip = Effect.fnUntraced(function* (stream: string) {
    const stored = last_by_stream.get(checked(stream))
    if (stored === undefined) return undefined
    const entry = read(stored)
    const { position, hash } = entry
    const last = isReadable(entry) ? entry : yield* lastBefore(stream, position)
    return { position, hash, last }
  })

  return Log.of({
    hashOf: sha256,
    digest,
    entries,
    followEntries,
    read: (part, position) => readable(entries(part, position)),
    follow: (part, position) => readable(followEntries(part, position)),
    tip,
    load: (stream) => Effect.map(tip(stream), (found) => found?.last),
    append: (appends) =>
      Effect.suspend(() => {
        const encoded = encode(appends)
        const stale = encoded.find(
          (one) => (last_by_stream.get(one.stream)?.position ?? 0) !== one.expected,
        )
        if (stale) {
          const detail = `${stale.stream} is no longer at position ${stale.expected}.`
          return Effect.fail(new VersionConflict({ detail }))
        }
        const answer = encoded.map(store)
        const notified = [...waiting]
        waiting.clear()
        for (const wake of notified) wake()
        return Effect.succeed(answer)
      }),
    lasts: (part) =>
      Stream.suspend(() =>
        Stream.fromIterable(
          [...last_by_stream.values()]
            .filter(({ stream }) => isPartOf(part, stream))
            .sort((one, other) => one.position - other.position)
            .map(read),
        ),
      ).pipe((found) => withReadableLasts(found, lastBefore)),
    head: (part) =>
      Effect.suspend(() => {
        const last = commits.findLast(({ stream }) => isPartOf(part, stream))
        if (last === undefined) return Effect.succeed(0)
        if (isReadable(read(last))) return Effect.succeed(last.position)
        return Effect.map(lastBefore(part, last.position), (found) => found?.position ?? 0)
      }),
    end: Effect.sync(() => commits.length),
  })
}

const reads = (commits: ReadonlyArray<Stored>, waiting: Set<() => void>, read: Read) => {
  /** The reader's next chunk; advances `from.index`. */
  const next = (part: Part, from: { index: number }, end: number) => {
    const chunk: Array<Entry> = []
    while (from.index < end && chunk.length < chunk_commits_max) {
      const stored = commits[from.index++]
      if (stored && isPartOf(part, stored.stream)) chunk.push(read(stored))
    }
    return chunk
  }

  const appended = Effect.callback<void>((resume) => {
    const wake = () => resume(Effect.void)
    waiting.add(wake)
    return Effect.sync(() => waiting.delete(wake))
  })

  return {
    entries: (part: Part, position = 0) =>
      Stream.suspend(() => {
        const from = { index: position }
        const end = commits.length
        const poll = () => {
          const chunk = next(part, from, end)
          return [chunk, chunk.length > 0 ? Option.some(undefined) : Option.none()] as const
        }
        return Stream.paginate(undefined, () => Effect.sync(poll))
      }),
    followEntries: (part: Part, position: number) =>
      Stream.suspend(() => {
        const from = { index: position }
        const poll: Effect.Effect<ReadonlyArray<Entry>> = Effect.suspend(() => {
          const chunk = next(part, from, commits.length)
          return chunk.length > 0 ? Effect.succeed(chunk) : Effect.andThen(appended, poll)
        })
        return Stream.fromIterableEffectRepeat(poll)
      }),
  }
}
