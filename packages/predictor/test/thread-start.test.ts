/** The start of a predictor thread, and the modules that it loads later. */
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { describe, expect, it } from "vitest"
import { png } from "../../../test/plant-disease/predicting.ts"
import { end, type ThreadOptions } from "../protocol.ts"

const workerData: ThreadOptions = {
  network: {
    onnx_path: "",
    input: { name: "x", layout: "NHWC", has_rescaling: false },
    output: { name: "y", classes: 1, activation: "softmax" },
  },
  // Without a session it only prepares images.
  session_threads: 0,
  batch_max: 1,
  resize: "bicubic",
  scale: "0..1",
  auto_orient: false,
  pixels_max: 1_000_000,
}

const startThread = (...execArgv: ReadonlyArray<string>) => {
  const program = new URL("../thread.ts", import.meta.url)
  return new Worker(program, { workerData, execArgv: [...execArgv] })
}

/** Simulates a damaged installation. */
const without_sharp = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module"
  registerHooks({
    resolve: (name, context, next) => {
      if (name === "sharp") throw new Error("sharp is missing")
      return next(name, context)
    },
  })`)}`

const prepared = async (thread: Worker) => {
  thread.postMessage({ kind: "prepare", image: png("red"), runs: false })
  const [answer] = await once(thread, "message")
  return answer
}

const stop = async (thread: Worker) => {
  thread.postMessage(end)
  await once(thread, "exit")
}

describe("a thread of the predictor", () => {
  it("is ready before the decoder is loaded; its first image waits for it", async () => {
    const thread = startThread()
    expect(await once(thread, "message")).toEqual([{ kind: "ready", batch: 0 }])
    expect(await prepared(thread)).toMatchObject({ kind: "prepared", width: 60, height: 40 })
    await stop(thread)
  })

  it("fails each image if the decoder cannot be loaded, and keeps running", async () => {
    const thread = startThread("--import", without_sharp)
    expect(await once(thread, "message")).toEqual([{ kind: "ready", batch: 0 }])
    const failed = { kind: "failed", detail: expect.stringContaining("sharp is missing") }
    expect(await prepared(thread)).toMatchObject(failed)
    expect(await prepared(thread)).toMatchObject(failed)
    await stop(thread)
  })

  /** Otherwise a restarted thread would have to load it again. */
  it.skipIf(process.platform !== "linux")("leaves sharp's native code loaded", () => {
    const program = `
      import { once } from "node:events"
      import { readFileSync } from "node:fs"
      import { Worker } from "node:worker_threads"
      await once(new Worker('import "sharp"', { eval: true }), "exit")
      const maps = readFileSync("/proc/self/maps", "utf8")
      console.log(/sharp-[^/]*[.]node/.test(maps), maps.includes("libvips"))`
    const args = ["--input-type=module", "-e", program]
    const cwd = import.meta.dirname
    expect(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }).trim()).toBe("true true")
  })
})
