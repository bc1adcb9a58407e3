/** ONNX Runtime sends and stores nothing about the machine. Source: decision 0201. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"

let home = ""
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "almanac-telemetry-"))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** Creates ONNX Runtime's environment in a process that does not look like CI. */
const createEnvironment = (module: string) => {
  const code = `
    const { InferenceSession } = await import(${JSON.stringify(module)})
    await InferenceSession.create(new Uint8Array(4)).catch(() => undefined)
  `
  const { PATH } = process.env
  const arguments_ = ["--input-type=module", "--eval", code]
  execFileSync(process.execPath, arguments_, {
    cwd: import.meta.dirname,
    env: { PATH, HOME: home },
  })
  return readdirSync(home, { recursive: true, encoding: "utf8" })
}

it("writes no identifier of the machine", () => {
  const door = new URL("../onnx-runtime.ts", import.meta.url)
  expect(createEnvironment(door.href)).toEqual([])
})

it.runIf(process.platform === "linux")("would write one without this package", () => {
  const files = createEnvironment("onnxruntime-node")
  expect(files.filter((name) => name.endsWith("deviceid"))).toHaveLength(1)
})
