/** Each way to start a server sets the same limits of memory: decision 0198. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")

const limits = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
  NODE_OPTIONS: "--max-semi-space-size=16",
}

const { scripts } = JSON.parse(read("package.json"))

describe.each([
  ["npm start", scripts.start],
  ["npm run cluster", scripts.cluster],
  ["almanac serve", read("launcher/almanac.mjs")],
  ["the image", read("deploy/Dockerfile")],
  ["the benchmarks", read("bench/gateway/almanac-gateway.ts")],
])("the memory of %s", (_, text: string) => {
  it.each(Object.entries(limits))("has %s", (name, value) => {
    expect(text).toMatch(new RegExp(`${name}\\W+${value.replace("--", "(?:--)")}\\b`))
  })
})
