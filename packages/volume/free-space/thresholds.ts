/**
 * When a file of the volume is worth compacting: how much of it may be live, in parts of what was
 * written to it. Moving a file that is live to a part `u` writes `u / (1 - u)` bytes for each byte
 * that it gives back, so the limits are low while the disk has room and high where it has not.
 *
 * Source: decision 0178, which has the measurements.
 */
import type { FreeSpace } from "./gauge.ts"

export interface Thresholds {
  /** A log file is emptied when less than this part of what was written to it is live. */
  readonly log_live_max: number
  /** A file of extents when less than this part is: uploads use free room in it again anyway. */
  readonly extent_live_max: number
  /** Empty files of extents that wait for uploads; the others are removed. */
  readonly empty_extent_files_max: number
  /** Emptied log files that are kept as spare ones; the others are removed. */
  readonly spare_log_files_max: number
}

/** While the disk has room: a byte that is given back costs at most one that is written. */
const relaxed: Thresholds = {
  log_live_max: 0.5,
  extent_live_max: 0.4,
  empty_extent_files_max: 1,
  spare_log_files_max: 2,
}

/**
 * Near the floor of free space, where puts would be refused beside much dead space: a byte that is
 * given back costs at most four that are written.
 */
const pressed: Thresholds = {
  log_live_max: 0.8,
  extent_live_max: 0.6,
  empty_extent_files_max: 0,
  spare_log_files_max: 1,
}

/** By hand: all that is worth a copy. */
export const by_hand: Thresholds = { ...pressed, log_live_max: 0.9, extent_live_max: 0.9 }

/** Room above the floor below which space is worth more than writes: this part of the volume. */
const pressed_share = 1 / 50

/** The limits of compaction by itself, by the disk's free space once `coming_bytes` came back. */
export const thresholdsOf = (space: FreeSpace, coming_bytes = 0): Thresholds =>
  space.spareBytes() + coming_bytes < space.ownBytes() * pressed_share ? pressed : relaxed
