/**
 * Whether a copy here is sound: for others that let theirs go on this node's word, where nothing
 * else would be left to make it of. It is read, by the rate of the repair; what takes longer than
 * others wait is told when they ask again.
 *
 * Source: DECISIONS, document 1, integrity, graceful leave; decision 0125.
 */

import type { HeldCopy, NodeEngine } from "#actors/blob-storage/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { readThrough } from "../sound-reading.ts"
import type { Timing } from "../timing.ts"
import type { Pace } from "./rate.ts"

export interface SoundnessParts {
  readonly local: Pick<NodeEngine, "read">
  readonly timing: Timing
  /** Asked before bytes are read. */
  readonly pace: Pace
}

/** So long a question waits for what is read, in milliseconds; others wait for 5 s and more. */
const wait_ms = 2000
/** Copies that are being read, or were and nobody asked again: of more the oldest is forgotten. */
const readings_max = 1000

/** So long a reading counts, from its beginning: what is older says nothing of the disk now. */
const counts_ns = 6n * 3600n * 1_000_000_000n

interface Reading {
  /** Of the copy that is read: what came in its place since is another one. */
  readonly stored_at: bigint
  readonly begun_at: bigint
  readonly is_sound: Promise<boolean>
}

export const makeSoundness = ({ local, timing, pace }: SoundnessParts) => {
  const readings = new Map<BlobId, Reading>()

  const read = async ({ id, stored_at }: HeldCopy) => {
    const copy = await readThrough(local, id, timing.now(), pace)
    return copy.stored_at === stored_at
  }
  const begin = (copy: HeldCopy) => {
    const [oldest] = readings.keys()
    if (oldest !== undefined && readings.size >= readings_max) readings.delete(oldest)
    // What is corrupt is set aside by the read, whatever it is that fails.
    const is_sound = read(copy).catch(() => false)
    readings.set(copy.id, { stored_at: copy.stored_at, begun_at: timing.now(), is_sound })
    return is_sound
  }
  const reading = (copy: HeldCopy) => {
    const begun = readings.get(copy.id)
    const is_valid =
      begun?.stored_at === copy.stored_at && timing.now() - begun.begun_at < counts_ns
    return is_valid ? begun.is_sound : begin(copy)
  }
  const late = () => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    return { promise, cancel: timing.after(wait_ms, () => resolve(undefined)) }
  }
  /** Which of these were read since they were last asked for, and are what was stored. */
  return async (copies: ReadonlyArray<HeldCopy>): Promise<ReadonlySet<BlobId>> => {
    const sound = new Set<BlobId>()
    const { promise: is_late, cancel } = late()
    for (const copy of copies) {
      const is_sound = await Promise.race([reading(copy), is_late])
      if (is_sound === undefined) break
      readings.delete(copy.id)
      if (is_sound) sound.add(copy.id)
    }
    cancel()
    return sound
  }
}
