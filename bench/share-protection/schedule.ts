/**
 * Suite 5: ten thousand policies due in the same minute, compared with bare appends of equal size.
 */

import { machine } from "../harness/machine.ts"
import { interleave, say } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { policies_total } from "./due-policies.ts"
import { openScheduling } from "./scheduling-run.ts"

export const schedule: Suite = async ({ folder, rounds, onEnd }) => {
  say(`preparing ${policies_total} policies`)
  const { tick, repeat, stop } = await openScheduling(folder)
  onEnd(stop)
  const seat = (name: string, run: () => Promise<number>) => ({
    name,
    round: async () => {
      const seconds = await run()
      const latency_ms = seconds * 1000
      return { runs: 1, runs_per_s: 1 / seconds, p50_ms: latency_ms, p99_ms: latency_ms }
    },
  })
  const seats = [seat("almanac", tick), seat("bare appends", repeat)]
  const effort = { in_flight: 1, seconds: 0, runs_max: 1 }
  const measured = await interleave(seats, effort, rounds, folder)
  const columns = { rate: "backups/s", per_run: policies_total, ours: "almanac", latency: false }
  const spent =
    `${rounds} ticks of ${policies_total} policies each, interleaved with the bare appends of ` +
    "the commits of the preceding tick, after one discarded."
  return [await machine(folder, [measured], []), spent, table(measured, columns)].join("\n\n")
}
