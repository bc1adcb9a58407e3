/** A thread in the place of one that answers: does what it was started for, and as it is told. */
import { setTimeout as pause } from "node:timers/promises"
import { parentPort, workerData } from "node:worker_threads"

// Which way is told by the name of its node.
const { node_id: way, place, connections } = workerData

if (way === "dies first") throw new Error("cannot listen")
Atomics.store(connections, place, 5)
parentPort.postMessage({ say: "listens" })
if (way === "dies later") {
  await pause(20)
  throw new Error("died by the test")
}
parentPort.on("message", ({ say, caller }) => {
  if (say === "close") {
    if (way === "stays") return
    process.exit(0)
  }
  if (say === "caller" || say === "settings" || say === "retire") {
    const word = [say, caller?.actor ?? ""].join(" ").trim()
    parentPort.postMessage({ say: "measured", answers: [[word, "", 200, 0]] })
    if (say === "retire") parentPort.postMessage({ say: "who", number: 2, token: "t" })
  }
})
if (way === "asks") parentPort.postMessage({ say: "who", number: 1, token: "t" })
