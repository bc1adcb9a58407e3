/**
 * Opens this node's volume, and closes it with the scope.
 *
 * Source: document 1 §1, §4 BlobService; docs/decisions/0110-volume-store.md.
 */
import { Effect } from "effect"
import { faultOf, faultText } from "#actors/blob-storage/ports/fault.ts"
import { FileFailure } from "#files"
import { blob_bytes_max } from "#schemas/blob-storage/blob.ts"
import { floorOf, holdFolder, openVolume, volumeFolder } from "#volume"

export interface BlobVolumeOptions {
  /** The store's own folder; the volume is in `volume/`. */
  readonly dir: string
  /** 0 means 90% of the disk. */
  readonly capacity_bytes: number
  /** Free space that puts leave on the disk; 0 or undefined means the documented default. */
  readonly free_floor_bytes?: number
  /** Maximum blob size; default: 5 TiB. */
  readonly size_max_bytes?: number
  /** Size of a new file of the volume; default: 64 MiB. */
  readonly segment_bytes?: number
  /** Rate of the background scrub; default: 0, no scrub. */
  readonly scrub_bytes_per_second?: number
  /** The last fact of this node in the log; default: 0. */
  readonly resume_after?: number
}

const segment_bytes_default = 64 * 2 ** 20

const unopened = (cause: unknown) => {
  const fault = faultOf(cause)
  const message = `The blob store cannot be opened: ${faultText(fault)}`
  return new FileFailure({ message, code: fault._tag })
}

/** Opens the volume exclusively until the scope closes. */
export const openBlobVolume = Effect.fnUntraced(function* (options: BlobVolumeOptions) {
  const dir = volumeFolder(options.dir)
  yield* holdFolder(dir)
  const free_floor_bytes = yield* floorOf(dir, options.free_floor_bytes ?? 0)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const open = Effect.tryPromise({
    try: () =>
      openVolume({
        dir,
        capacity_bytes: options.capacity_bytes,
        free_floor_bytes,
        size_max_bytes: options.size_max_bytes ?? blob_bytes_max,
        segment_bytes: options.segment_bytes ?? segment_bytes_default,
        scrub_bytes_per_second: options.scrub_bytes_per_second ?? 0,
        resume_after: options.resume_after ?? 0,
        report: (problem) => void run(Effect.logWarning(`The volume in ${dir}: ${problem}`)),
      }),
    catch: unopened,
  })
  return yield* Effect.acquireRelease(open, (engine) => Effect.promise(engine.close))
})
