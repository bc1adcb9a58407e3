/** What the log holds that no release wrote. Source: decision 0182. */
import { Effect, Stream } from "effect"
import { isReadable, Log } from "#events/log.ts"

/** What was found of the whole log. */
export interface Quarantined {
  /** Entries that were looked at, and those of them that cannot be read. */
  readonly entries: number
  readonly count: number
  readonly first: ReadonlyArray<{
    readonly position: number
    readonly stream: string
    readonly hash: string
    readonly reason: string
  }>
}

/** Walks the log once; the first `limit` are listed, all are counted. */
export const quarantined = Effect.fnUntraced(function* (limit: number) {
  const log = yield* Log
  const first: Array<Quarantined["first"][number]> = []
  let entries = 0
  let count = 0
  yield* Stream.runForEachArray(log.entries(""), (stretch) =>
    Effect.sync(() => {
      for (const entry of stretch) {
        entries++
        if (isReadable(entry)) continue
        count++
        const { position, stream, hash, unreadable: reason } = entry
        if (first.length < limit) first.push({ position, stream, hash, reason })
      }
    }),
  )
  return { entries, count, first } satisfies Quarantined
})
