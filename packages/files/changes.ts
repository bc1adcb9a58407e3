/** Watches files that are read again when they change, such as a policy or a certificate. */
import { stat } from "node:fs/promises"
import { Effect, Schedule } from "effect"

/**
 * Interval between checks of the files, in milliseconds. File system notifications would miss
 * changes of links, by which certbot and Kubernetes replace files.
 */
const check_interval_ms = 1000

/**
 * A fingerprint of the file's last change, including its permissions, because an unreadable file
 * may become readable. A missing file has a fingerprint too.
 */
const fingerprintOf = (path: string) =>
  Effect.promise(() =>
    stat(path, { bigint: true }).then(
      ({ ctimeNs, ino, size }) => `${ctimeNs} ${ino} ${size}`,
      () => "gone",
    ),
  )

/**
 * Notes the current state of the files, and returns a function that runs an effect within a second
 * of a change, until the scope closes. Call it before the first read, so that no change is missed.
 */
export const watchFiles = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const fingerprint = Effect.map(Effect.forEach(paths, fingerprintOf), (all) => all.join())
  let last_fingerprint = yield* fingerprint
  return <R>(again: Effect.Effect<void, never, R>) => {
    const once = Effect.gen(function* () {
      const found = yield* fingerprint
      if (found === last_fingerprint) return
      last_fingerprint = found
      yield* again
    })
    return Effect.forkScoped(Effect.repeat(once, Schedule.spaced(check_interval_ms)))
  }
})
