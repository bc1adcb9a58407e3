/**
 * Decides when to write a checkpoint, and takes its snapshot between two batches. Commits continue
 * while it is written; their changes are replayed from the log.
 */
import { isFull } from "#actors/blob-storage/ports/fault.ts"
import type { VolumeDisk } from "../disk.ts"
import type { OpenCommitQueue } from "../log/commit.ts"
import { makeMutex } from "../mutex.ts"
import { type Checkpoint, writeCheckpoint } from "./checkpoint.ts"
import type { recover } from "./recovery.ts"
import type { CheckpointSpace } from "./space.ts"

/** Bytes of log between checkpoints: a few seconds of replay at startup. */
const checkpoint_bytes = 256 * 1024 * 1024
/** At least this many times its own size, so that checkpoints stay a small part of all writes. */
const checkpoint_factor = 4

type Recovered = Awaited<ReturnType<typeof recover>>

export interface Checkpoints {
  /**
   * Writes a checkpoint of the durable state. Rejects with the disk's error. On a full disk it
   * takes the space of empty files, but leaves `spare_kept` spare log files (default 1).
   */
  readonly checkpoint: (spare_kept?: number) => Promise<void>
  /** Serial of the last durable checkpoint. */
  readonly serial: () => number
  /** Called with the length of each batch, in bytes. */
  readonly noteWritten: (bytes: number) => void
  /** Resolves when no checkpoint is being written. */
  readonly settled: () => Promise<void>
}

/**
 * Retries as long as space can be freed. An interrupted checkpoint is harmless: the last one is in
 * the other file.
 */
const retryWithSpace = async (
  write: () => Promise<void>,
  makeSpace: () => Promise<boolean>,
): Promise<void> => {
  try {
    await write()
  } catch (cause) {
    if (!isFull(cause) || !(await makeSpace())) throw cause
    await retryWithSpace(write, makeSpace)
  }
}

interface CheckpointFiles {
  readonly dir: string
  readonly disk: VolumeDisk
  readonly space: CheckpointSpace
}

/** Writes checkpoints, one at a time. */
export const makeCheckpoints = (
  { volume_id, segments, index, extents, state, notes, ...recovered }: Recovered,
  commits: OpenCommitQueue,
  { dir, disk, space }: CheckpointFiles,
): Checkpoints => {
  let log_bytes = 0
  let { serial } = recovered
  const mutex = makeMutex()
  let is_in_background = false

  /** Takes a snapshot. Later changes do not affect its images. */
  const take = async (): Promise<Checkpoint> => {
    commits.assertWritable()
    const logs = Array.from(state.files.values(), ({ segment, ...log }) => {
      const { number, generation, bytes } = segment
      return { ...log, number, generation, bytes }
    })
    const facts = {
      serial: serial + 1,
      volume_id: Buffer.from(volume_id).toString("hex"),
      generation: segments.generation(),
      end: commits.writer.where(),
      counters: { ...state.counters },
      logs,
      notes: { ...notes },
    }
    log_bytes = 0
    return { facts, index: index.image(), extents: [...extents.image()] }
  }
  const write = async () => {
    const { facts, ...images } = await commits.between(take)
    await space.exclusively(() => writeCheckpoint(disk, dir, facts, images))
    serial = facts.serial
  }
  const checkpoint = (spare_kept = 1) =>
    mutex.run(() => retryWithSpace(write, () => space.makeSpace(spare_kept)))
  /** A full disk is not a failure; any other error makes the volume read-only. */
  const inBackground = async () => {
    is_in_background = true
    try {
      await checkpoint()
    } catch (cause) {
      if (!isFull(cause)) commits.fail(`A checkpoint could not be written: ${String(cause)}`)
    } finally {
      is_in_background = false
    }
  }
  return {
    checkpoint,
    serial: () => serial,
    settled: async () => {
      await mutex.settled()
      await space.settled()
    },
    noteWritten: (bytes) => {
      log_bytes += bytes
      space.growAhead()
      if (is_in_background) return
      if (log_bytes < Math.max(checkpoint_bytes, checkpoint_factor * index.bytes())) return
      void inBackground()
    },
  }
}
