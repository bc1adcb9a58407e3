/**
 * Prints each published event as it arrives. After a restart it continues after the last one.
 *
 *     node docs/examples/subscribe.ts ./data
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { DeliverPolicy, jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"

const [, , folder = "data", place = "last-event"] = process.argv

/** The sequence of the last event that was printed. */
const lastPrinted = () => {
  try {
    return Number(readFileSync(place, "utf8"))
  } catch {
    return 0
  }
}

// A new file, renamed: after a crash the file has the old or the new sequence, never a part.
const remember = (sequence: number) => {
  writeFileSync(`${place}.new`, String(sequence))
  renameSync(`${place}.new`, place)
}

/** Prints until the connection is closed. */
const follow = async (last: number, stopping: AbortSignal) => {
  // Read for each connection, because each start of the server changes address and password.
  const { nats } = JSON.parse(readFileSync(join(folder, "dev-credentials.json"), "utf8"))
  const { url: servers, user, password: pass } = nats
  const connection = await connect({ servers, user, pass, maxReconnectAttempts: 5 })
  stopping.addEventListener("abort", () => void connection.close())
  const events = await jetstream(connection).consumers.get("ALMANAC_EVENTS", {
    filter_subjects: ["events.blob-storage.>"],
    ...(last > 0 && { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: last + 1 }),
  })
  let printed = last
  for await (const message of await events.consume()) {
    if (message.seq <= printed) continue
    process.stdout.write(`${message.string()}\n`)
    printed = message.seq
    remember(printed)
  }
}

const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort())
while (!stop.signal.aborted) {
  await follow(lastPrinted(), stop.signal).catch((cause: unknown) => console.error(String(cause)))
  await pause(1000, undefined, { signal: stop.signal }).catch(() => undefined)
}
