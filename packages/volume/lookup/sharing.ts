/**
 * What a volume lets other threads of its process see, so that they read blobs by themselves: its
 * index, in memory that all of them have, and which of its files are out of use. They open the
 * files on their own and verify what they read; what they are unsure of they ask for.
 *
 * Source: decision 0168.
 */
import type { SegmentKind } from "../log/format.ts"
import type { Index } from "../parts.ts"
import type { Pin } from "../reads/reads.ts"
import type { Bucket, Replaced } from "./map.ts"

/** The identifiers that begin with the first `depth` bits of `first`. */
export interface SharedBucket {
  readonly first: number
  readonly depth: number
  readonly capacity: number
  readonly words: Uint32Array
}

/** What a thread begins with. */
export interface SharedVolume {
  readonly dir: string
  /** Mixed into where identifiers are looked for. */
  readonly seed: number
  readonly buckets: ReadonlyArray<SharedBucket>
}

export type VolumeNews =
  | { readonly news: "bucket"; readonly bucket: SharedBucket }
  /** The file is used for something else from now on, or removed. */
  | { readonly news: "retired"; readonly kind: SegmentKind; readonly number: number }

export interface VolumeSharing {
  /** Answers what there is; of what changes from then on `tell` is told, until `end`. */
  readonly watch: (tell: (news: VolumeNews) => void) => {
    readonly volume: SharedVolume
    readonly end: () => void
  }
  readonly pin: Pin
}

const sharedOf = ({ first, depth, table }: Readonly<Bucket>): SharedBucket => ({
  first,
  depth,
  capacity: table.capacity,
  words: table.words,
})

/** Passes on what happens in a volume to whoever watches it. */
export const makeVolumeNews = () => {
  const watchers = new Set<(news: VolumeNews) => void>()
  const tell = (news: VolumeNews) => {
    for (const watcher of watchers) watcher(news)
  }
  const replaced: Replaced = (bucket) => tell({ news: "bucket", bucket: sharedOf(bucket) })
  const retired = (kind: SegmentKind, number: number) => tell({ news: "retired", kind, number })
  return {
    watched: { replaced, retired },
    sharing: (
      { dir, seed, index }: { readonly dir: string; readonly seed: number; readonly index: Index },
      pin: Pin,
    ): VolumeSharing => ({
      pin,
      watch: (watcher) => {
        watchers.add(watcher)
        return {
          volume: { dir, seed, buckets: index.buckets().map(sharedOf) },
          end: () => void watchers.delete(watcher),
        }
      },
    }),
  }
}
export type VolumeNewsDesk = ReturnType<typeof makeVolumeNews>
