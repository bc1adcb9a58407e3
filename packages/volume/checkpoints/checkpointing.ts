/**
 * When a volume writes checkpoints, and of what: all that is durable between two batches. Commits
 * go on while it is written; what comes meanwhile is replayed from the log.
 */
import { isFull } from "#actors/blob-storage/blobs/fault.ts"
import type { VolumeDisk } from "../disk.ts"
import type { OpenLine } from "../log/commit.ts"
import { makeTurns } from "../log/turns.ts"
import { type Checkpoint, writeCheckpoint } from "./checkpoint.ts"
import type { recover } from "./recovery.ts"
import type { CheckpointRoom } from "./room.ts"

/** A checkpoint is written after so much log, in bytes: some seconds of replay at a start. */
const checkpoint_bytes = 256 * 1024 * 1024
/** And after so many times what it takes itself, so that it stays a small part of the writing. */
const checkpoint_factor = 4

type Recovered = Awaited<ReturnType<typeof recover>>

export interface Checkpoints {
  /**
   * Makes durable what is durable now as a checkpoint. Rejects as the disk does. On a full disk
   * what is empty gives its room, but for so many spare log files: one, unless 0 is given.
   */
  readonly checkpoint: (spare_kept?: number) => Promise<void>
  /** The number of the last one that is durable. */
  readonly serial: () => number
  /** Is told how long each batch was, in bytes. */
  readonly wrote: (bytes: number) => void
  /** Resolves when none is being written. */
  readonly settled: () => Promise<void>
}

/**
 * Tries again as long as something makes way. The checkpoint that was cut off is in the way of
 * nothing: the last one stands, in the other file.
 */
const untilThereIsRoom = async (
  write: () => Promise<void>,
  makeWay: () => Promise<boolean>,
): Promise<void> => {
  try {
    await write()
  } catch (cause) {
    if (!isFull(cause) || !(await makeWay())) throw cause
    await untilThereIsRoom(write, makeWay)
  }
}

interface CheckpointPlace {
  readonly dir: string
  readonly disk: VolumeDisk
  readonly room: CheckpointRoom
}

/** Writes checkpoints, one at a time. */
export const makeCheckpoints = (
  { volume_id, segments, index, extents, state, notes, ...recovered }: Recovered,
  line: OpenLine,
  { dir, disk, room }: CheckpointPlace,
): Checkpoints => {
  let log_bytes = 0
  let { serial } = recovered
  const turns = makeTurns()
  let is_in_background = false

  /** The images stay what they are when this returns, whatever changes. */
  const take = async (): Promise<Checkpoint> => {
    line.assertWritable()
    const logs = Array.from(state.files.values(), ({ segment, ...log }) => {
      const { number, generation, bytes } = segment
      return { ...log, number, generation, bytes }
    })
    const facts = {
      serial: serial + 1,
      volume_id: Buffer.from(volume_id).toString("hex"),
      generation: segments.generation(),
      end: line.writer.where(),
      counters: { ...state.counters },
      logs,
      notes: { ...notes },
    }
    log_bytes = 0
    return { facts, index: index.image(), extents: [...extents.image()] }
  }
  const write = async () => {
    const { facts, ...images } = await line.between(take)
    await room.exclusively(() => writeCheckpoint(disk, dir, facts, images))
    serial = facts.serial
  }
  const checkpoint = (spare_kept = 1) =>
    turns.run(() => untilThereIsRoom(write, () => room.makeWay(spare_kept)))
  /** A full disk has no room for one now; any other error is one of a disk that is broken. */
  const inBackground = async () => {
    is_in_background = true
    try {
      await checkpoint()
    } catch (cause) {
      if (!isFull(cause)) line.fail(`A checkpoint could not be written: ${String(cause)}`)
    } finally {
      is_in_background = false
    }
  }
  return {
    checkpoint,
    serial: () => serial,
    settled: async () => {
      await turns.settled()
      await room.settled()
    },
    wrote: (bytes) => {
      log_bytes += bytes
      room.lookAhead()
      if (is_in_background) return
      if (log_bytes < Math.max(checkpoint_bytes, checkpoint_factor * index.bytes())) return
      void inBackground()
    },
  }
}
