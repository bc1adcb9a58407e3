/** Suite 3: every message of the log into a new read model. */

import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import { type Seat, seat } from "../harness/stage.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { commitOf, messages, workers } from "./commit.ts"
import { startFilledServer } from "./nats-server.ts"

const contestants = [
  { module: "../log/almanac-replay.ts", name: "almanac" },
  { module: "../log/bare.ts", name: "bare loop" },
  { module: "../log/bare.ts", name: "bare loop, from memory" },
]

/** One replay is one round, however long it takes. */
const once = { in_flight: 1, seconds: Number.MAX_SAFE_INTEGER, runs_max: 1 }

export const replay: Suite = async ({ folder, rounds, onEnd }) => {
  const server = await orSkip("the JetStream server", () => startFilledServer(folder, onEnd))
  const home = { folder, ...(server ? { nats: server.url } : {}) }
  const seats: Array<Seat> = []
  for (const { module, name } of contestants) {
    const taken = await orSkip(name, () => seat(module, name, home, onEnd))
    if (taken) seats.push(taken)
  }
  const measured = await interleave(seats, once, rounds, folder)
  const columns = { rate: "messages/s", per_run: messages, ours: "almanac", latency: false }
  const bytes = JSON.stringify(commitOf(messages - 1).commit).length
  const spent =
    `${rounds} replays of ${messages} messages (up to ${bytes} bytes, ${workers} aggregates) ` +
    "each, interleaved, after one discarded. The bare loop from JetStream is the fair limit."
  const versions = [server?.version ?? "no nats-server"]
  const line = await machine(folder, [measured], versions)
  return [line, spent, table(measured, columns)].join("\n\n")
}
