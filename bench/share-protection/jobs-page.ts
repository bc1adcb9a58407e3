/** Suite 4: a page of a thousand jobs out of a million rows, compared with the bare statement. */

import { machine } from "../harness/machine.ts"
import { interleave, orSkip, say } from "../harness/series.ts"
import { type Seat, seat } from "../harness/stage.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { fillRows, page_rows, rows as total_rows } from "./job-rows.ts"

const listings = [
  { of: "One project's jobs, a tenth of all", ours: "almanac", theirs: "bare statement" },
  {
    of: "All jobs",
    ours: "almanac, all projects",
    theirs: "bare statement, all projects",
  },
]

export const jobsPage: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  say(`filling ${total_rows} rows`)
  await fillRows(folder)
  const effort = { in_flight: 1, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const sections: Array<string> = []
  const all = []
  for (const { of, ours, theirs } of listings) {
    const seats: Array<Seat> = []
    for (const name of [ours, theirs]) {
      const taken = await orSkip(name, () =>
        seat("../share-protection/job-rows.ts", name, { folder }, onEnd),
      )
      if (taken) seats.push(taken)
    }
    const measured = await interleave(seats, effort, rounds, folder)
    all.push(measured)
    const columns = { rate: "pages/s", per_run: 1, ours, latency: true }
    sections.push(`${of}:`, table(measured, columns))
  }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; pages of ` +
    `${page_rows} rows out of ${total_rows}, each from another marker, one at a time.`
  return [await machine(folder, all, []), spent, ...sections].join("\n\n")
}
