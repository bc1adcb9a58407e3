/**
 * Commits to the dashboard's file continuously: reports when it has started, and stops on request.
 */
import { parentPort, workerData } from "node:worker_threads"
import { openWriter } from "../../world/capital-pressure/store-file.ts"

const file = openWriter(String(workerData))
const composite = file.prepare(
  "update capital_composite set z = @n, tier_1 = @n, tier_2 = @n, tier_3 = @n, tier_4 = @n",
)
const last = file.prepare(
  `update capital_observation set value = @n
   where (metric_id, day) in (select metric_id, max(day) from capital_observation group by 1)`,
)
/** Each commit sets every day, every tier and every metric's last value to its own number. */
const commit = file.transaction((n: number) => {
  last.run({ n })
  composite.run({ n })
})
let n = 0
commit(n)
parentPort?.postMessage("begun")
const timer = setInterval(() => commit(++n), 1)
parentPort?.once("message", () => {
  clearInterval(timer)
  file.close()
})
