/**
 * Moves the published events of a data folder that an earlier version wrote. Their stream was in
 * the account of the subscribers; it is in the publisher's now, and that account has no JetStream.
 * Only for a store that no server uses.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { events_stream } from "#adapters/published/stream-name.ts"

/** `store` is the server's `store_dir`. Killed anywhere, the next start finishes it. */
export const moveEvents = (store: string) => {
  const accounts = join(store, "jetstream")
  const before = join(accounts, "SUBSCRIBERS")
  const from = join(before, "streams", events_stream)
  const to = join(accounts, "EVENTS", "streams", events_stream)
  // There is one already if an earlier version ran in between: what it wrote comes from the log.
  if (existsSync(from) && !existsSync(to)) {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    renameSync(from, to)
  }
  rmSync(before, { recursive: true, force: true })
}
