/** A log that somebody has changed behind our back: commits as they are stored now. */
import { Effect, Layer, Stream } from "effect"
import { digest, sha256 } from "#adapters/commit-codec.ts"
import { type Commit, isPartOf, Log, type Recorded } from "#events/log.ts"

/** A commit as it would be read after its bytes were changed. */
export const changed = (recorded: Recorded, change: Partial<Commit>): Recorded => {
  const commit = { ...recorded.commit, ...change }
  const { position, stream } = recorded
  return { position, stream, commit, hash: sha256(JSON.stringify(commit)) }
}

/** A log that answers exactly these, in this order; nothing can be written. */
export const tamperedLog = (commits: ReadonlyArray<Recorded>) => {
  const of = (part: string) => commits.filter(({ stream }) => isPartOf(part, stream))
  const refuse = () => Effect.die(new Error("This log is only read."))
  return Layer.succeed(
    Log,
    Log.of({
      hashOf: sha256,
      digest,
      load: (stream) => Effect.succeed(of(stream).at(-1)),
      append: refuse,
      read: (part, position = 0) =>
        Stream.fromIterable(of(part).filter((recorded) => recorded.position > position)),
      follow: () => Stream.fromEffect(refuse()),
      lasts: (part) =>
        Stream.fromIterable(new Map(of(part).map((one) => [one.stream, one])).values()),
      head: (part) => Effect.succeed(of(part).at(-1)?.position ?? 0),
    }),
  )
}
