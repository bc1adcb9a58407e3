/** Files that are read again when they change: a policy, a certificate. */
import { stat } from "node:fs/promises"
import { Effect, Schedule } from "effect"

/**
 * How often the files' times are looked at, in milliseconds. To be told of changes instead would
 * miss those of links, by which certbot and Kubernetes exchange files.
 */
const look_ms = 1000

/**
 * When the file was changed, its rights too: what could not be read may be readable from then on. A
 * file that is gone has its own answer.
 */
const changedAt = (path: string) =>
  Effect.promise(() =>
    stat(path, { bigint: true }).then(
      ({ ctimeNs, ino, size }) => `${ctimeNs} ${ino} ${size}`,
      () => "gone",
    ),
  )

/**
 * Notes how the files are now, and answers what does something a second after they changed at the
 * latest, until the scope closes. To be asked before they are read, so that no change is missed.
 */
export const watched = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const look = Effect.map(Effect.forEach(paths, changedAt), (all) => all.join())
  let seen = yield* look
  return <R>(again: Effect.Effect<void, never, R>) => {
    const once = Effect.gen(function* () {
      const found = yield* look
      if (found === seen) return
      seen = found
      yield* again
    })
    return Effect.forkScoped(Effect.repeat(once, Schedule.spaced(look_ms)))
  }
})
