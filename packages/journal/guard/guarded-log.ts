/** Write guard of the log, and a stand-in for a log whose stream is gone. */
import { Effect, Result, Stream } from "effect"
import type { Link } from "#bus"
import { Log, LogUnavailable } from "#events/log.ts"
import { digest, sha256 } from "../commits/codec.ts"
import type { Write } from "../jetstream/write.ts"
import { checkStream, type Watch, type Watched } from "./watch.ts"

interface GuardOptions {
  readonly watch: Watch
  readonly watched: Watched
  readonly link: Link
}

/**
 * Writes only to a complete log: the stream is checked again after each lost connection, because
 * its server may have restarted on a damaged store. Each success advances the mark.
 */
export const guardedWrite = Effect.fnUntraced(function* (
  write: Write,
  { watch, watched, link }: GuardOptions,
) {
  const run = Effect.runPromiseWith(yield* Effect.context())
  let is_checked = true
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      link.onChange(() => {
        is_checked = false
      }),
    ),
    (forget) => Effect.sync(forget),
  )
  const check = async () => {
    is_checked = true
    const checked = await run(Effect.result(checkStream(watch, watched)))
    if (Result.isFailure(checked)) is_checked = false
    return checked
  }
  const guard: Write = async (commits) => {
    if (!is_checked) {
      const checked = await check()
      if (Result.isFailure(checked)) return Result.fail(checked.failure)
    }
    const detail = watch.problem()
    if (detail !== undefined) return Result.fail(new LogUnavailable({ detail }))
    const written = await write(commits)
    const position = Result.isSuccess(written) ? written.success.at(-1) : undefined
    const bytes = commits.at(-1)?.bytes
    if (position !== undefined && bytes !== undefined) watch.advance(position, bytes)
    return written
  }
  return guard
})

/** Stand-in for a log whose stream is gone: empty and read-only. */
export const absentLog = (watch: Watch) =>
  Log.of({
    hashOf: sha256,
    digest,
    load: () => Effect.undefined,
    tip: () => Effect.undefined,
    append: () => Effect.fail(new LogUnavailable({ detail: watch.problem() ?? "" })),
    read: () => Stream.empty,
    follow: () => Stream.never,
    lasts: () => Stream.empty,
    head: () => Effect.succeed(0),
    entries: () => Stream.empty,
    followEntries: () => Stream.never,
    end: Effect.succeed(0),
  })
