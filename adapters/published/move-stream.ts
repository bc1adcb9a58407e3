/**
 * Migrates the published events of a data folder written by an earlier version. Their stream was in
 * the subscribers' account, which no longer has JetStream; it is now in the publisher's. The store
 * must not be in use.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { events_stream } from "#adapters/published/stream-name.ts"

/**
 * Moves the stream within `store`, the server's `store_dir`. The next start finishes an interrupted
 * migration.
 */
export const moveEvents = (store: string) => {
  const accounts = join(store, "jetstream")
  const before = join(accounts, "SUBSCRIBERS")
  const from = join(before, "streams", events_stream)
  const to = join(accounts, "EVENTS", "streams", events_stream)
  // It exists if an earlier version ran in between: its events are rebuilt from the log.
  if (existsSync(from) && !existsSync(to)) {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    renameSync(from, to)
  }
  rmSync(before, { recursive: true, force: true })
}
