/** The engine of the crash tests: small files, a clock that jumps, no background upkeep. */

import { noise } from "../../../../test/contract/blob-storage/engine-bytes.ts"
import { openVolume } from "../../engine.ts"
import { segment_bytes } from "./contents.ts"
import type { Open } from "./crash.ts"

const capacity_bytes = 1024 ** 3
/** A file requested within seconds of the previous one would be longer. */
const jump_ms = 60_000
const volume_id_bytes = 16

export const openSimulated: Open = (disk, seed) => {
  let now = 0
  const options = {
    dir: "/volume",
    capacity_bytes,
    size_max_bytes: capacity_bytes,
    segment_bytes,
    scrub_bytes_per_second: 0,
    background: false,
    volume_id: noise(seed, volume_id_bytes),
    // Background timestamps follow the last timestamp.
    clock: () => 1n,
    now: () => {
      now += jump_ms
      return now
    },
  }
  return openVolume(options, disk)
}
