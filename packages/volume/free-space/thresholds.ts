/**
 * Thresholds of compaction: how much of a file may be live, as a share of the bytes written to it.
 * Moving a file with a live share `u` writes `u / (1 - u)` bytes per byte reclaimed, so the
 * thresholds are low while the disk has space, and high when it does not.
 *
 * Source: decision 0178, which has the measurements.
 */
import type { FreeSpace } from "./gauge.ts"

export interface Thresholds {
  /** A log file is emptied if less than this share of the bytes written to it is live. */
  readonly log_live_max: number
  /** Likewise for an extent file: uploads reuse its free space anyway. */
  readonly extent_live_max: number
  /** Empty extent files kept for uploads. Any others are removed. */
  readonly empty_extent_files_max: number
  /** Emptied log files kept as spare ones. Any others are removed. */
  readonly spare_log_files_max: number
}

/** While the disk has space: at most one byte written per byte reclaimed. */
const normal: Thresholds = {
  log_live_max: 0.5,
  extent_live_max: 0.4,
  empty_extent_files_max: 1,
  spare_log_files_max: 2,
}

/**
 * Near the floor, where puts would be refused despite much dead space: at most four bytes written
 * per byte reclaimed.
 */
const low_space: Thresholds = {
  log_live_max: 0.8,
  extent_live_max: 0.6,
  empty_extent_files_max: 0,
  spare_log_files_max: 1,
}

/** On request: everything that is worth a copy. */
export const on_request: Thresholds = { ...low_space, log_live_max: 0.9, extent_live_max: 0.9 }

/** Space above the floor, as a share of the volume, below which it is worth more than writes. */
const low_space_share = 1 / 50

/** Thresholds of background compaction, given the free space once `coming_bytes` are returned. */
export const thresholdsOf = (space: FreeSpace, coming_bytes = 0): Thresholds =>
  space.spareBytes() + coming_bytes < space.ownBytes() * low_space_share ? low_space : normal
