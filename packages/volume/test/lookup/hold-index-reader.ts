/** A thread that looks into a shared index for as long as it is let, and tells what was wrong. */
import { parentPort, workerData } from "node:worker_threads"
import { makeSharedIndex, unsure } from "../../lookup/shared-reads.ts"
import type { SharedBucket, SharedVolume } from "../../lookup/sharing.ts"
import { idOf, isPlaceOf, lasting } from "./shared-entry.ts"

/** Looked up before messages are heard again. */
const looks = 5000

// What the test starts it with.
const { volume, changing } = workerData as { volume: SharedVolume; changing: number }
const index = makeSharedIndex(volume)
const seen = { found: 0, unsure: 0, absent: 0, wrong: [] as Array<string> }
let is_over = false
let number = 0

const look = (number: number) => {
  try {
    const place = index.find(idOf(number))
    if (place === undefined) {
      seen.absent += 1
      if (lasting(number)) seen.wrong.push(`${number} is not there`)
    } else {
      seen.found += 1
      if (!isPlaceOf(number, place)) seen.wrong.push(`${number} is at ${JSON.stringify(place)}`)
    }
  } catch (cause) {
    if (cause !== unsure) throw cause
    seen.unsure += 1
  }
}

const go = () => {
  for (let n = 0; n < looks; n++) {
    look(number)
    number = (number + 1) % changing
  }
  if (is_over) parentPort?.postMessage(seen)
  else setImmediate(go)
}

parentPort?.on("message", (message: SharedBucket | "over") => {
  if (message === "over") is_over = true
  else index.take(message)
})
go()
parentPort?.postMessage("looking")
