/** `almanac blobs migrate`: blobs of an earlier version, while no server runs. */
import { Clock, Console, Effect, Layer, Schema } from "effect"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import { BlobStore } from "#actors/blob-storage/blobs/store.ts"
import { recordAll } from "#actors/blob-storage/journal.ts"
import { host } from "#actors/host.ts"
import { nodeId } from "#adapters/blob-storage/node.ts"
import {
  migrate,
  migrationState,
  migrationVolume,
  removePlain,
} from "#adapters/blob-storage/plain/migration.ts"
import { openPlain, type PlainStore } from "#adapters/blob-storage/plain/plain.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { instance } from "#cli/instance.ts"
import { type Progress, progressTo } from "#cli/progress.ts"
import type { Settings } from "#schemas/settings.ts"
import { exclusive } from "#server/session.ts"
import { openVolume } from "#volume"

/** The stores are as they were, or can be taken up again where they are: exit code 1. */
class MigrationFailed extends Schema.TaggedError<MigrationFailed>()("MigrationFailed", {
  message: Schema.String,
}) {}

const counted = (count: number, one: string) =>
  `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`

const reasonOf = (cause: unknown) => {
  const fault = faultOf(cause)
  if (fault._tag === "BlobCapacityExceeded") {
    return `${fault.detail} Both stores need room until the new one is whole.`
  }
  return "detail" in fault ? fault.detail : fault._tag
}
const failed = (cause: unknown) =>
  new MigrationFailed({ message: `the blobs were not migrated: ${reasonOf(cause)}` })

const unasked = Effect.die("only the journal of a plain store is asked for")

/** As much of the port as the journal's process needs. */
const journalOnly = (plain: PlainStore) =>
  Layer.succeed(
    BlobStore,
    BlobStore.of({
      put: () => unasked,
      get: () => unasked,
      stat: () => unasked,
      delete: () => unasked,
      tombstone: () => unasked,
      list: () => unasked,
      usage: unasked,
      scan: (after_cursor, limit) => Effect.sync(() => plain.scan(after_cursor, limit)),
      acknowledge: (cursor) => Effect.sync(() => plain.acknowledge(cursor)),
    }),
  )

const fill = Effect.fnUntraced(function* (configured: Settings, plain: PlainStore) {
  const { dir } = configured.blob
  const { blobs } = plain.totals()
  const node_id = yield* nodeId(configured.cluster.node_id, configured.data.dir)
  const progress: Progress = progressTo(blobs)
  const clock = yield* Clock.Clock
  const recording = recordAll(node_id).pipe(Effect.provide(journalOnly(plain)))
  const record = Effect.runPromiseWith(yield* Effect.context<Effect.Services<typeof recording>>())
  yield* Effect.tryPromise({
    try: () =>
      migrate(plain, {
        dir,
        open: (folder) =>
          openVolume(migrationVolume(folder, configured.blob.segment_bytes, plain.cursor())),
        record: async () => void (await record(recording)),
        now: () => clock.currentTimeNanosUnsafe(),
        done: (count) => progress.at("blobs", count, blobs),
      }),
    catch: failed,
  })
  yield* progress.end
})

/** The plain store's blobs into a volume that then has its place. */
const move = (configured: Settings) =>
  Effect.gen(function* () {
    const plain = yield* Effect.acquireRelease(
      Effect.try({ try: () => openPlain(configured.blob.dir), catch: failed }),
      (plain) => Effect.sync(plain.close),
    )
    yield* fill(configured, plain)
    const { blobs, quarantined } = plain.totals()
    yield* Console.log(`${counted(blobs, "blob")} migrated, ${quarantined} set aside as damaged`)
  }).pipe(Effect.scoped, Effect.provide(host), Effect.provide(exclusive(configured)))

const clean = ({ blob }: Settings) =>
  Effect.tryPromise({ try: () => removePlain(blob.dir, openPlain), catch: failed })

export const migrateBlobs = Effect.fnUntraced(function* (configured: Settings) {
  const { dir } = configured.blob
  const running = yield* instance(configured)
  if (running !== undefined) {
    const message = `process ${running.pid} runs on this folder: stop it first`
    return yield* new MigrationFailed({ message })
  }
  switch (migrationState(dir)) {
    case "volume":
      return yield* Console.log(`nothing to migrate: ${dir} holds no store of an earlier version`)
    case "both": {
      const message = `${dir} holds two stores, index.sqlite with blobs/ and volume/: move one away`
      return yield* new MigrationFailed({ message })
    }
    case "plain":
      yield* move(configured)
      return yield* clean(configured)
    case "done":
      yield* Effect.provide(clean(configured), DataFolder.layer(configured.data.dir))
      return yield* Console.log(`what was left of the earlier store in ${dir} is removed`)
  }
})
