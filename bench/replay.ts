/** Suite 3: every message of the log into a new read model. */
import { commitOf, messages, workers } from "./commit.ts"
import { machine } from "./machine.ts"
import { startFilledServer } from "./nats-server.ts"
import { interleave, orSkip } from "./series.ts"
import { type Seat, seat } from "./stage.ts"
import type { Suite } from "./suite.ts"
import { table } from "./table.ts"

const contestants = [
  { module: "./almanac-replay.ts", name: "almanac" },
  { module: "./bare.ts", name: "bare loop" },
  { module: "./bare.ts", name: "bare loop, from memory" },
]

/** One replay is a round, however long it takes. */
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
