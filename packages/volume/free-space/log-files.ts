/** Takes log files out of use: empty ones, and the current one if it is worth compacting. */

import type { recover } from "../checkpoints/recovery.ts"
import type { OpenCommitQueue } from "../log/commit.ts"
import type { VolumeParts } from "../parts.ts"
import { on_request } from "./thresholds.ts"

type Recovered = Pick<Awaited<ReturnType<typeof recover>>, "state" | "segments">

export const makeLogFiles = (
  { state, segments }: Recovered,
  { between, writer }: OpenCommitQueue,
): Pick<VolumeParts, "retireLog" | "sealLog" | "trimLog" | "logSpace"> => ({
  retireLog: async (number, spare_max) => {
    const file = state.files.get(number)
    if (!file) return
    state.removeFile(number)
    await segments.retire(file.segment, spare_max)
  },
  trimLog: async () => {
    await segments.trimSpares()
    await writer.begin()
  },
  sealLog: async () => {
    await between(async () => {
      const current = state.logFiles(writer.where().file).find(({ is_current }) => is_current)
      if (!current || current.live_bytes >= on_request.log_live_max * current.written_bytes) return
      await writer.roll(0, false)
    })
    await writer.begin()
  },
  logSpace: () => writer.available() + segments.spareDataBytes(),
})
