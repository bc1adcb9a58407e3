/**
 * The formats of libvips are set for the whole process: a starting thread must not disturb others.
 */
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { expect, it } from "vitest"
import { pngs } from "../../../../test/plant-disease/predicting.ts"
import { sharedState } from "../../images/once-in-process.ts"

const program = new URL("./decoding-thread.ts", import.meta.url)

const decoding = async (times: number): Promise<string> => {
  const [failure] = await once(
    new Worker(program, { workerData: { image: pngs.red, times } }),
    "message",
  )
  return failure
}

it("a thread decodes while others load the decoder", async () => {
  sharedState()
  const first = await decoding(1)
  const one = decoding(5_000)
  const others: Array<string> = []
  for (let n = 0; n < 5; n++) {
    others.push(...(await Promise.all(Array.from({ length: 4 }, () => decoding(20)))))
  }
  expect(new Set([first, ...others, await one])).toEqual(new Set(["none"]))
}, 60_000)
