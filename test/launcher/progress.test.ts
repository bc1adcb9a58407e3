/** Progress of downloads, as lines on a standard error that is no terminal. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { expect, it } from "vitest"

const progress = join(import.meta.dirname, "../../launcher/progress.mjs")

/** Runs two tasks with a clock that a timer of the program advances by ten seconds. */
const program = (is_terminal: boolean) => `
  process.stderr.isTTY = ${is_terminal}
  let now = 0
  let tick
  performance.now = () => now
  globalThis.setInterval = (run, ms) => { tick = () => { now += ms; run() }; return 1 }
  const { say, withProgress } = await import(${JSON.stringify(progress)})
  let bytes = 1e6
  const long = Promise.withResolvers()
  const download = withProgress("packages", () => long.promise, { bytes: () => bytes, total: 8 })
  const bundle = withProgress("bundle", () => Promise.resolve())
  tick()
  await bundle
  bytes = 5e6
  tick()
  say("a message")
  long.resolve()
  await download`

const linesOf = (is_terminal: boolean) => {
  const args = ["--input-type=module", "-e", program(is_terminal)]
  return spawnSync(process.execPath, args, { encoding: "utf8" }).stderr
}

it("is a line every ten seconds, with megabytes and seconds of each task", () => {
  expect(linesOf(false).trim().split("\n")).toEqual([
    "almanac: packages: 1 of about 8 MB, 10 s; bundle: 10 s",
    "almanac: packages: 5 of about 8 MB, 20 s",
    "almanac: a message",
  ])
})

it("is one line that updates every second on a terminal, and is gone at the end", () => {
  const clear = "\r\u001b[K"
  const steps = linesOf(true).split(clear)
  expect(steps).toEqual([
    "",
    "almanac: packages: 1 of about 8 MB, 1 s; bundle: 1 s",
    "almanac: packages: 5 of about 8 MB, 2 s",
    "almanac: a message\n",
    "",
  ])
})
