/**
 * `almanac blobs compact`: gives the space of deleted blobs back to the disk. The node on the data
 * folder does it, or the one that a profile names; while none runs, this process does.
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

/** Not all was given back, or nothing could be done: exit code 1. */
class NotCompacted extends Schema.TaggedError<NotCompacted>()("NotCompacted", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

/** A number of bytes, which a server writes as text where its `json.int64` is "string". */
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

/** How long one look at this process's own run takes, in milliseconds. */
const look_ms = 500
/** No progress is shown of a run that is over sooner, in milliseconds. */
const quiet_ms = 2000

/** Repeats the request until it is done, and shows on standard error how far it is. */
const untilDone = <E, R>(next: Effect.Effect<Figures, E, R>) =>
  Effect.gen(function* () {
    const progress = progressOn(screen(), quiet_ms)
    const shown = Effect.tap(next, ({ given_back_bytes, remaining_bytes }) =>
      Effect.sync(() =>
        progress.at({
          label: "Compacting",
          done: given_back_bytes,
          total: given_back_bytes + remaining_bytes,
        }),
      ),
    )
    const ended = Effect.repeat(shown, { until: ({ is_done }) => is_done })
    return yield* Effect.ensuring(ended, Effect.sync(progress.end))
  })

const counted = (bytes: number) => bytes.toLocaleString("en-US")

const outcome = Effect.fnUntraced(function* (found: Figures, is_json: boolean) {
  const { given_back_bytes, disk_bytes, used_bytes, problem } = found
  const line =
    `gave back ${counted(given_back_bytes)} bytes; the volume uses ${counted(disk_bytes)} ` +
    `of which ${counted(used_bytes)} are live`
  yield* Console.log(is_json ? JSON.stringify(found) : line)
  if (problem !== undefined) return yield* new NotCompacted({ message: problem })
})

/** While nothing runs on the data folder: what was stored goes into the log first. */
const alone = (configured: Settings) =>
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
      Effect.catch((cause) => Effect.logWarning(`The log takes no facts: ${faultText(cause)}`)),
    )
    return yield* untilDone(fromEngine(() => volume.reclaim(look_ms))).pipe(
      Effect.mapError((fault) => new NotCompacted({ message: faultText(fault) })),
    )
  }).pipe(Effect.scoped, Effect.provide(host), Effect.provide(exclusive(configured)))

const here = Effect.fnUntraced(function* (configured: Settings) {
  const running = yield* instance(configured)
  if (running !== undefined) {
    const text = callInstance(running, configured, "POST", path)
    return yield* untilDone(Effect.flatMap(text, decodeText))
  }
  const folder = volumeFolder(configured.blob.dir)
  if (!existsSync(folder)) {
    return yield* new NotCompacted({ message: `There is no volume in ${folder} (blob.dir).` })
  }
  return yield* alone(configured)
})

/** Whether a server is named that is to be asked, instead of the one on the data folder. */
const isNamed = ({ profile }: Shared) =>
  [profile, process.env.ALMANAC_PROFILE, process.env.ALMANAC_URL].some(Boolean)

/** Another server, over HTTP. */
const elsewhere = Effect.fnUntraced(function* (shared: Shared) {
  const found: Array<Figures> = []
  yield* withSession(shared, async ({ http, signal }) => {
    const asked = { method: "POST", path, need: "blob", signal } as const
    const next = Effect.promise(() => http.json(asked))
    const done = untilDone(Effect.flatMap(next, ({ body }) => decode(body)))
    found.push(await Effect.runPromise(done))
  })
  return found
})

export const compactBlobs = Effect.fnUntraced(function* (shared: Shared) {
  const found = isNamed(shared) ? yield* elsewhere(shared) : [yield* here(yield* settings)]
  for (const one of found) yield* outcome(one, shared.json)
})
