/**
 * `almanac blobs compact`: frees the disk space of deleted blobs. The node on the data folder or in
 * the profile does the work; if none runs, this process does.
 */
import { existsSync } from "node:fs"
import { Console, Effect, Runtime, Schema } from "effect"
import { recordAll, recordedCursor } from "#actors/blob-storage/journal.ts"
import { Blobs, fromEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultText } from "#actors/blob-storage/ports/fault.ts"
import { host } from "#actors/host.ts"
import { nodeId } from "#adapters/blob-storage/node.ts"
import { openBlobVolume } from "#adapters/blob-storage/open-volume.ts"
import { progressOn } from "#cli/client/progress.ts"
import { screen } from "#cli/client/screen.ts"
import { callInstance, instance } from "#cli/instance.ts"
import { type Shared, withSession } from "#cli/requests.ts"
import { settings } from "#cli/root.ts"
import type { Settings } from "#schemas/settings.ts"
import { exclusive } from "#server/session.ts"
import { volumeFolder } from "#volume"

/** Some space was not freed, or compaction failed: exit code 1. */
class NotCompacted extends Schema.TaggedError<NotCompacted>()("NotCompacted", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** A number of bytes, which a server sends as a string if its `json.int64` is "string". */
const Bytes = Schema.Union([Schema.Finite, Schema.FiniteFromString])

const Figures = Schema.Struct({
  is_done: Schema.Boolean,
  given_back_bytes: Bytes,
  remaining_bytes: Bytes,
  disk_bytes: Bytes,
  used_bytes: Bytes,
  problem: Schema.optionalKey(Schema.UndefinedOr(Schema.String)),
})
type Figures = typeof Figures.Type

const path = "/v1/cluster/compact"
const decode = Schema.decodeUnknownEffect(Figures)
const decodeText = Schema.decodeUnknownEffect(Schema.fromJsonString(Figures))

/** Length of one slice of work in this process, in milliseconds. */
const slice_ms = 500
/** Runs shorter than this print no progress, in milliseconds. */
const quiet_ms = 2000

/** Repeats the request until compaction is done; reports progress on standard error. */
const untilDone = <E, R>(next: Effect.Effect<Figures, E, R>) =>
  Effect.gen(function* () {
    const progress = progressOn(screen(), quiet_ms)
    const step = Effect.tap(next, ({ given_back_bytes, remaining_bytes }) =>
      Effect.sync(() =>
        progress.at({
          label: "Compacting",
          done: given_back_bytes,
          total: given_back_bytes + remaining_bytes,
        }),
      ),
    )
    const all_steps = Effect.repeat(step, { until: ({ is_done }) => is_done })
    return yield* Effect.ensuring(all_steps, Effect.sync(progress.end))
  })

const formatCount = (bytes: number) => bytes.toLocaleString("en-US")

const printOutcome = Effect.fnUntraced(function* (figures: Figures, is_json: boolean) {
  const { given_back_bytes, disk_bytes, used_bytes, problem } = figures
  const line =
    `freed ${formatCount(given_back_bytes)} bytes; ` +
    `the volume uses ${formatCount(disk_bytes)} bytes, of which ${formatCount(used_bytes)} are live`
  yield* Console.log(is_json ? JSON.stringify(figures) : line)
  if (problem !== undefined) return yield* new NotCompacted({ message: problem })
})

/** Compacts without a running instance; records stored blobs in the log first. */
const compactOffline = (configured: Settings) =>
  Effect.gen(function* () {
    const { blob, cluster, data } = configured
    const node_id = yield* nodeId(cluster.node_id, data.dir)
    const volume = yield* openBlobVolume({
      dir: blob.dir,
      capacity_bytes: cluster.capacity_bytes,
      free_floor_bytes: blob.free_floor_bytes,
      segment_bytes: blob.segment_bytes,
      resume_after: yield* recordedCursor(node_id),
    })
    yield* recordAll(node_id).pipe(
      Effect.provideService(Blobs, volume),
      Effect.catch((cause) => Effect.logWarning(`The log accepts no writes: ${faultText(cause)}`)),
    )
    return yield* untilDone(fromEngine(() => volume.reclaim(slice_ms))).pipe(
      Effect.mapError((fault) => new NotCompacted({ message: faultText(fault) })),
    )
  }).pipe(Effect.scoped, Effect.provide(host), Effect.provide(exclusive(configured)))

const compactLocal = Effect.fnUntraced(function* (configured: Settings) {
  const running = yield* instance(configured)
  if (running !== undefined) {
    const text = callInstance(running, configured, "POST", path)
    return yield* untilDone(Effect.flatMap(text, decodeText))
  }
  const folder = volumeFolder(configured.blob.dir)
  if (!existsSync(folder)) {
    return yield* new NotCompacted({ message: `The folder ${folder} (blob.dir) has no volume.` })
  }
  return yield* compactOffline(configured)
})

/** Whether the command line or environment names a server other than that of the data folder. */
const isRemote = ({ profile }: Shared) =>
  [profile, process.env.ALMANAC_PROFILE, process.env.ALMANAC_URL].some(Boolean)

/** Compacts a remote server over HTTP. */
const compactRemote = Effect.fnUntraced(function* (shared: Shared) {
  const figures: Array<Figures> = []
  yield* withSession(shared, async ({ http, signal }) => {
    const request = { method: "POST", path, need: "blob", signal } as const
    const next = Effect.promise(() => http.json(request))
    const done = untilDone(Effect.flatMap(next, ({ body }) => decode(body)))
    figures.push(await Effect.runPromise(done))
  })
  return figures
})

export const compactBlobs = Effect.fnUntraced(function* (shared: Shared) {
  const figures = isRemote(shared)
    ? yield* compactRemote(shared)
    : [yield* compactLocal(yield* settings)]
  for (const one of figures) yield* printOutcome(one, shared.json)
})
