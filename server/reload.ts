/** Reloads settings on SIGHUP. */
import { Effect, Queue, Stream } from "effect"
import type { InvalidSettings } from "#adapters/settings.ts"
import type { Settings } from "#schemas/settings.ts"
import { reload } from "#schemas/settings-reload.ts"
import { isLoopback } from "#schemas/settings-rules.ts"

/** SIGHUPs; pending ones are merged. */
const hangups = Stream.callback<void>((queue) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const onHangup = () => void Queue.offerUnsafe(queue, undefined)
      process.on("SIGHUP", onHangup)
      return onHangup
    }),
    (listener) => Effect.sync(() => process.off("SIGHUP", listener)),
  ),
)

/**
 * The current settings. On SIGHUP, `read` reads them again and reloadable ones apply at once; the
 * others, and errors, are logged.
 */
export const reloadableSettings = Effect.fnUntraced(function* <R>(
  first: Settings,
  read: Effect.Effect<Settings, InvalidSettings, R>,
) {
  let running = first
  const again = Effect.gen(function* () {
    const next = reload(running, yield* read)
    running = next.settings
    const applied = next.applied.join(", ") || "nothing changed"
    yield* Effect.logInfo(`Settings were reloaded: ${applied}.`)
    if (next.needs_restart.length > 0) {
      yield* Effect.logWarning(`Changes that need a restart: ${next.needs_restart.join(", ")}.`)
    }
  }).pipe(Effect.catchTag("InvalidSettings", ({ message }) => Effect.logError(message)))
  yield* Effect.forkScoped(Stream.runForEach(hangups, () => again))
  return () => running
})

/** Warns if tokens are sent over the network without TLS. */
export const warnOfAddress = ({ api, tls }: Settings) =>
  tls.cert !== "" || isLoopback(api.bind_host)
    ? Effect.void
    : Effect.logWarning(
        `Without TLS, tokens are sent unencrypted to ${api.bind_host}:${api.bind_port}; ` +
          "set tls.cert and tls.key, or api.bind_host = 127.0.0.1.",
      )
