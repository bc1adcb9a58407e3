/** A log that was tampered with: commits as they are stored now. */
import { Effect, Layer, Stream } from "effect"
import { type Commit, isPartOf, Log, type Recorded } from "#events/log.ts"
import { digest, sha256 } from "#journal"

/** A commit as read after its bytes were changed. */
export const changed = (recorded: Recorded, change: Partial<Commit>): Recorded => {
  const commit = { ...recorded.commit, ...change }
  const { position, stream } = recorded
  return { position, stream, commit, hash: sha256(JSON.stringify(commit)) }
}

/** A log that returns exactly these commits in this order, and cannot be written to. */
export const tamperedLog = (commits: ReadonlyArray<Recorded>) => {
  const of = (part: string) => commits.filter(({ stream }) => isPartOf(part, stream))
  const read = (part: string, position = 0) =>
    Stream.fromIterable(of(part).filter((recorded) => recorded.position > position))
  const refuse = () => Effect.die(new Error("This log is only read."))
  return Layer.succeed(
    Log,
    Log.of({
      hashOf: sha256,
      digest,
      load: (stream) => Effect.succeed(of(stream).at(-1)),
      tip: (stream) =>
        Effect.sync(() => {
          const last = of(stream).at(-1)
          return last && { position: last.position, hash: last.hash, last }
        }),
      append: refuse,
      read,
      entries: read,
      follow: () => Stream.fromEffect(refuse()),
      followEntries: () => Stream.fromEffect(refuse()),
      end: Effect.sync(() => of("").at(-1)?.position ?? 0),
      lasts: (part) =>
        Stream.fromIterable(new Map(of(part).map((one) => [one.stream, one])).values()),
      head: (part) => Effect.succeed(of(part).at(-1)?.position ?? 0),
    }),
  )
}
