/** A log with counters, published events and a cursor, its backup, and empty buses. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, type Scope, Stream } from "effect"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { type BackupOptions, backupState } from "#adapters/state/backup.ts"
import { verifyState } from "#adapters/state/proof.ts"
import { claimFolder, type RestoreOptions, restoreState } from "#adapters/state/restore.ts"
import { openStateStore } from "#adapters/state/store.ts"
import { notary } from "#adapters/system/notary.ts"
import { webhookCursorsJetStream } from "#adapters/system/webhook/cursors-jetstream.ts"
import { EventsConnection, NatsConnection } from "#bus"
import type { GenerationsOptions } from "#journal"
import { PublishedEvents } from "#projections/published-events.ts"
import { temporaryFolder } from "../programs/nats.ts"
import { publishedEvent } from "../system/events-served.ts"
import { fresh, logState, opened, written } from "./generation-log.ts"

/** The locations of a test's installation. */
export interface World {
  readonly log: GenerationsOptions
  /** The data folder. */
  readonly folder: string
}

const cursor = {
  replay: 0,
  read: 2,
  open: [],
  failing_since_ms: null,
  last_success_ms: 7,
  last_failure: null,
}

/** Writes the files of a data folder, some of which a backup omits. */
const write = (folder: string) => {
  for (const name of ["vault", "blobs", "read-models", "log"]) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  writeFileSync(join(folder, "vault", "key"), "the vault's key", { mode: 0o600 })
  writeFileSync(join(folder, "watchlist.json"), "[]", { mode: 0o644 })
  writeFileSync(join(folder, "blobs", "log-1"), "bytes")
  writeFileSync(join(folder, "read-models", "system.sqlite"), "made again")
}

/** An installation with counters in its log. */
export const installed = Effect.gen(function* () {
  const { folder, ...options } = yield* fresh
  write(folder)
  const world: World = { folder, log: { ...options, folder: join(folder, "log") } }
  yield* opened(world.log, written)
  yield* more
  return world
})

/** Two more published events, and the cursor of a webhook. */
export const more = Effect.gen(function* () {
  const ports = Layer.merge(publishedEventsJetStream(1), webhookCursorsJetStream(1))
  yield* Effect.gen(function* () {
    const events = yield* PublishedEvents
    const last = (yield* events.last)?.sequence ?? 0
    yield* events.append([publishedEvent(last + 1), publishedEvent(last + 2)], last)
    const cursors = yield* WebhookCursors
    const kept = yield* cursors.load("hook")
    yield* cursors.save("hook", cursor, kept?.change ?? 0)
  }).pipe(Effect.provide(Layer.fresh(ports)))
})

/** Everything that readers can see of an installation. */
export const seen = Effect.fnUntraced(function* (log: GenerationsOptions) {
  const ports = Layer.merge(publishedEventsJetStream(1), webhookCursorsJetStream(1))
  return yield* Effect.gen(function* () {
    const events = yield* PublishedEvents
    const last = (yield* events.last)?.sequence ?? 0
    const cursors = yield* WebhookCursors
    return {
      log: yield* opened(log, logState),
      events: yield* Stream.runCollect(Stream.take(events.follow(0, {}), last)),
      cursor: (yield* cursors.load("hook"))?.cursor,
    }
  }).pipe(Effect.provide(Layer.fresh(ports)))
})

export const newTarget: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  temporaryFolder,
  (folder) => mkdtempSync(join(folder, "backup-")),
)

export const quiet = () => Effect.void

/** Makes a backup, or adds to the existing one. */
export const backedUp = Effect.fnUntraced(function* (
  { log, folder }: World,
  to: string,
  passphrase?: string,
  onProgress: BackupOptions["onProgress"] = quiet,
) {
  const store = yield* openStateStore(to, { passphrase, make: true })
  const options = { store, folder, log, is_alone: true, almanac: "0", onProgress }
  const events = yield* EventsConnection
  return yield* opened(
    log,
    backupState(options).pipe(
      Effect.provide(notary(folder)),
      Effect.provideService(EventsConnection, events),
    ),
  )
})

export interface Target {
  readonly folder: string
  readonly passphrase?: string
  readonly after?: NonNullable<RestoreOptions["after"]>
  readonly is_files_only?: boolean
}

/** Verifies a backup and restores it over the existing bus. */
export const restored = Effect.fnUntraced(function* (
  from: string,
  { name, replicas }: GenerationsOptions,
  { folder, passphrase, after, is_files_only = false }: Target,
) {
  const store = yield* openStateStore(from, { passphrase, make: false })
  const { manifest } = store
  if (manifest === undefined) throw new Error("There is no manifest.")
  const log = { name, replicas, folder: join(folder, "log") }
  yield* verifyState(store, manifest, log)
  yield* claimFolder(folder, manifest)
  const options = { store, manifest, folder, log, is_files_only, onProgress: quiet }
  yield* restoreState({ ...options, ...(after && { after }) })
  return log
})

/** A separate, empty bus for as long as the body runs. */
export const elsewhere = <A, E>(
  body: (folder: string) => Effect.Effect<A, E, NatsConnection | EventsConnection | Scope.Scope>,
) =>
  Effect.gen(function* () {
    const bus = yield* temporaryFolder
    const folder = join(yield* temporaryFolder, "data")
    const server = ownServerLayer().pipe(Layer.provide(DataFolder.layer(bus)))
    const both = Layer.merge(NatsConnection.layer, EventsConnection.layer)
    return yield* Effect.scoped(body(folder)).pipe(
      Effect.provide(Layer.fresh(Layer.provide(both, server)), { local: true }),
    )
  })

/** Flips a bit in the middle of a file, and returns how to undo it. */
export const flipped = (path: string) => {
  const right = readFileSync(path)
  const at = Math.floor(right.length / 2)
  writeFileSync(
    path,
    right.map((byte, i) => (i === at ? byte ^ 1 : byte)),
  )
  return () => writeFileSync(path, right)
}
