/** Suite 6: a page of jobs for a caller whose token is verified, and without authentication. */
import { join } from "node:path"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { applyLoad, load_tool } from "../gateway/load.ts"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"

const connections = 32

const contestants = [
  { name: "token", settings: {} },
  { name: "no authentication", settings: { ALMANAC_API__NOAUTH: "true" } },
]

/** The response of both contestants: an empty page, so that little else is measured. */
const mustAnswer = async (url: string, token: string) => {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`it answered ${response.status}: ${text}`)
  return text
}

export const token: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const seats = []
  const answers = new Set<string>()
  for (const { name, settings } of contestants) {
    const started = await orSkip(name, () => startGateway(join(folder, name), settings))
    if (!started) continue
    onEnd(started.stop)
    const { tenant } = started
    const url = new URL("jobs", started.url).href
    answers.add(await mustAnswer(url, tenant))
    const load = { url, token: tenant, connections }
    seats.push({
      name,
      round: ({ seconds }: { readonly seconds: number }) => applyLoad({ ...load, seconds }, folder),
    })
  }
  if (answers.size !== 1) throw new Error("the servers do not answer alike")
  const effort = { in_flight: connections, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const measured = await interleave(seats, effort, rounds, folder)
  const columns = { rate: "requests/s", per_run: 1, ours: "token", latency: true }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; ${connections} ` +
    `connections of ${load_tool}; both send the token, and get the same page.`
  return [await machine(folder, [measured], []), spent, table(measured, columns)].join("\n\n")
}
