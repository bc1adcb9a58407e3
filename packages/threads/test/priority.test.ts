import { once } from "node:events"
import { readlinkSync } from "node:fs"
import { constants, getPriority } from "node:os"
import { Worker } from "node:worker_threads"
import { expect, it } from "vitest"

const { PRIORITY_BELOW_NORMAL } = constants.priority

const tested = new URL("../priority.ts", import.meta.url).href

/** Runs in a thread, and reports the priority that the kernel gives it. */
const program = `
import { readlinkSync } from "node:fs"
import { getPriority } from "node:os"
import { parentPort } from "node:worker_threads"
import { yieldToOthers } from "${tested}"
yieldToOthers()
parentPort.postMessage(getPriority(Number(readlinkSync("/proc/thread-self").split("/").at(-1))))
`

it.skipIf(process.platform !== "linux")(
  "a thread that yields has less priority, and its process keeps its own",
  async () => {
    const self = Number(readlinkSync("/proc/thread-self").split("/").at(-1))
    const before = [getPriority(0), getPriority(self)]
    const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`))
    const [priority] = await once(thread, "message")
    await thread.terminate()
    expect(priority).toBe(Math.max(PRIORITY_BELOW_NORMAL, before[1] ?? 0))
    expect([getPriority(0), getPriority(self)]).toStrictEqual(before)
  },
)
