/** A volume on a simulated disk, whose clock advances by a minute per query. */
import { openVolume } from "../../engine.ts"
import type { SimulatedDisk } from "./disk.ts"

const minute_ms = 60_000

type Options = Parameters<typeof openVolume>[0]

/** Opens it without background work, with these options. */
export const openSimulated = (
  { disk }: SimulatedDisk,
  options: Pick<Options, "dir" | "capacity_bytes" | "segment_bytes"> &
    Partial<Pick<Options, "free_floor_bytes">>,
) => {
  let now = 0
  const own = {
    size_max_bytes: 2 ** 40,
    scrub_bytes_per_second: 0,
    background: false,
    now: () => {
      now += minute_ms
      return now
    },
  }
  return openVolume({ ...own, ...options }, disk)
}
