/**
 * Room for the next checkpoint: its files are grown in the background while the disk has room, and
 * a put that they would have no room for is refused as on a full disk. So what deletes leave behind
 * can always be given up, which takes a checkpoint first.
 */
import { type BlobFault, faultOf, isFull } from "#actors/blob-storage/blobs/fault.ts"
import type { VolumeDisk } from "../disk.ts"
import type { ExtentFiles } from "../extents/files.ts"
import type { FreeSpace } from "../free-space/gauge.ts"
import type { OpenSegments } from "../log/segments.ts"
import type { VolumeState } from "../log/state.ts"
import { makeTurns } from "../log/turns.ts"
import type { Index } from "../parts.ts"
import { checkpointBytes, checkpointRoom, first_bytes, growCheckpointFiles } from "./checkpoint.ts"

/**
 * Held back of the room, in bytes and as a part of what a checkpoint takes now: for the puts of one
 * batch, and for deletes of what is not here, of which each adds an entry and none is refused.
 */
const margin_bytes = 32 * 1024
const margin_share = 1 / 8
/** The files are grown when this part of them would be taken, to so many times what it takes. */
const full_share = 2 / 3
const growth_factor = 2
/** After the disk was full it is asked again at most so often, in milliseconds. */
const full_again_ms = 200

export interface CheckpointRoomParts {
  readonly disk: VolumeDisk
  readonly dir: string
  readonly index: Index
  readonly extents: ExtentFiles
  readonly state: Pick<VolumeState, "files">
  readonly segments: Pick<OpenSegments, "spareCount" | "discardSpare">
  readonly now: () => number
  readonly fail: (detail: string) => void
  readonly space: FreeSpace
}

export interface CheckpointRoom {
  /** Runs what writes to the files, one at a time; it must not wait for the commit line. */
  readonly exclusively: <A>(work: () => Promise<A>) => Promise<A>
  /** Makes the files where they are missing. A disk that is full is no error. */
  readonly begin: () => Promise<void>
  /** Grows the files in the background where they are nearly full. */
  readonly lookAhead: () => void
  /** Why no put may be taken, once nothing helps: not growing, nor `makeWay`. */
  readonly fault: () => Promise<BlobFault | undefined>
  /**
   * Grows the files by the room of a second spare log file, which nothing durable names, else by
   * that of an empty file of extents, else by that of the first where none is to be kept. Answers
   * whether there was one.
   */
  readonly makeWay: (spare_kept: number) => Promise<boolean>
  /** Resolves when nobody writes to the files. */
  readonly settled: () => Promise<void>
}

const no_room: BlobFault = { _tag: "BlobCapacityExceeded", detail: "The disk is full." }

/** What a checkpoint of now would take, with what is held back. */
const wantedBytes = ({ index, extents, state }: CheckpointRoomParts) => {
  const kept = extents.imageSize()
  const own = index.imageSize()
  const images = kept.images + own.images
  const files = kept.images + state.files.size
  const bytes = checkpointBytes(kept.bytes + own.bytes, { images, files })
  return bytes * (1 + margin_share) + margin_bytes
}

export const makeCheckpointRoom = (parts: CheckpointRoomParts): CheckpointRoom => {
  const { disk, dir, segments, extents, now, fail, space } = parts
  const wanted = () => wantedBytes(parts)
  const { run: exclusively, settled } = makeTurns()
  let room_bytes = 0
  let full: { readonly fault: BlobFault; readonly at: number } | undefined
  let growing: Promise<void> | undefined

  /** To what is needed first: what the disk has left after that is for either file. */
  const growTo = async (lengths: ReadonlyArray<number>) => {
    try {
      for (const bytes of lengths) await growCheckpointFiles(disk, dir, bytes)
      full = undefined
    } catch (cause) {
      if (!isFull(cause)) throw cause
      full = { fault: faultOf(cause), at: now() }
    }
    room_bytes = await checkpointRoom(disk, dir)
  }
  /** For puts, which leave the floor: a checkpoint itself takes what there is. */
  const growForPuts = async () => {
    await space.look()
    const faultAt = (bytes: number) => space.fault(2 * Math.max(0, bytes - room_bytes))
    const lengths = [wanted(), growth_factor * wanted()]
    const allowed = lengths.filter((bytes) => faultAt(bytes) === undefined)
    if (allowed.length > 0) return growTo(allowed)
    full = { fault: faultAt(wanted()) ?? no_room, at: now() }
  }
  const grow = async () => {
    try {
      await exclusively(growForPuts)
    } catch (cause) {
      fail(`The files of checkpoints could not be grown: ${String(cause)}`)
    }
  }
  const more = (): Promise<void> => {
    if (full && now() - full.at < full_again_ms) return Promise.resolve()
    growing ??= grow().finally(() => {
      growing = undefined
    })
    return growing
  }
  const makeWay = (spare_kept: number) =>
    exclusively(async () => {
      const count = segments.spareCount("log")
      if (count > 1 || !(await extents.cutEmpty())) {
        if (count <= spare_kept) return false
        await segments.discardSpare("log")
      }
      await growTo([wanted()])
      return true
    })
  return {
    exclusively,
    settled,
    begin: () => exclusively(() => growTo([first_bytes])),
    lookAhead: () => {
      if (wanted() > full_share * room_bytes) void more()
    },
    fault: async () => {
      const isShort = () => wanted() > room_bytes
      // Asked before each batch: hardly ever more than this.
      if (!isShort()) return undefined
      // One that is under way may have met a disk that was full then: it is not the last word.
      await growing
      if (isShort()) await more()
      while (isShort() && (await makeWay(1)));
      return isShort() ? full?.fault : undefined
    },
    makeWay,
  }
}
