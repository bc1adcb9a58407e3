import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { findBinary, missingBinary } from "../../launcher/binaries.mjs"
import { cacheDirectory, root } from "../../launcher/cache.mjs"
import { makeFolder, writeProgram, writeVersioned } from "./checkout.ts"

const cache_before = process.env.ALMANAC_CACHE_DIR
afterAll(() => {
  if (cache_before === undefined) delete process.env.ALMANAC_CACHE_DIR
  else process.env.ALMANAC_CACHE_DIR = cache_before
})

/** The launcher reads the cache folder from its environment. */
const place = () => {
  const folder = makeFolder()
  process.env.ALMANAC_CACHE_DIR = join(folder, "cache")
  const environment = { PATH: [join(folder, "first"), join(folder, "second")].join(":") }
  return { folder, environment, cached: join(folder, "cache", "bin", "nats-server") }
}

const timesAsked = (path: string) => readFileSync(`${path}.asked`, "utf8").trim().split("\n").length

describe("a program", () => {
  it("is the first of PATH that is recent enough", () => {
    const { folder, environment, cached } = place()
    writeVersioned(join(folder, "first", "nats-server"), "2.10.27")
    writeVersioned(join(folder, "second", "nats-server"), "2.15.0")
    writeVersioned(cached, "2.16.0")
    const found = findBinary("nats-server", { environment })
    expect(found).toEqual({ path: join(folder, "second", "nats-server"), version: "2.15.0" })
  })

  it("is the cache's where PATH has none that does", () => {
    const { folder, environment, cached } = place()
    writeVersioned(join(folder, "first", "nats-server"), "2.10.27")
    writeProgram(join(folder, "second", "nats-server"), "exit 1")
    writeVersioned(cached, "10.0.1")
    expect(findBinary("nats-server", { environment })?.path).toBe(cached)
  })

  it("is never another than the configured one", () => {
    const { folder, environment, cached } = place()
    writeVersioned(cached, "2.15.1")
    const configured = join(folder, "mine")
    expect(findBinary("nats-server", { configured, environment })).toBeUndefined()
    expect(missingBinary("nats-server", { configured, environment })).toContain(configured)
    writeVersioned(configured, "2.15.3")
    expect(findBinary("nats-server", { configured, environment })?.version).toBe("2.15.3")
  })

  it("is asked for its version once, and again when the file changes", () => {
    const { folder, environment } = place()
    const path = join(folder, "first", "nats-server")
    writeVersioned(path, "2.15.0")
    findBinary("nats-server", { environment })
    findBinary("nats-server", { environment })
    expect(timesAsked(path)).toBe(1)
    writeVersioned(path, "2.15.10")
    expect(findBinary("nats-server", { environment })?.version).toBe("2.15.10")
    expect(timesAsked(path)).toBe(2)
  })

  it("is found with a memory that cannot be read", () => {
    const { folder, environment, cached } = place()
    writeVersioned(cached, "2.15.0")
    writeFileSync(join(folder, "cache", "versions.json"), "{")
    expect(findBinary("nats-server", { environment })?.path).toBe(cached)
  })

  it("that is missing is named in one line, with what was skipped and what to install", () => {
    const { folder, environment } = place()
    writeVersioned(join(folder, "first", "restic"), "0.14.0")
    const line = missingBinary("restic", { environment })
    expect(line).toContain("restic 0.18 or later")
    expect(line).toContain(`${join(folder, "first", "restic")} is 0.14.0, which is too old`)
    expect(line).toContain("https://restic.net")
    expect(line).not.toContain("\n")
  })
})

describe("the cache", () => {
  it("is where ALMANAC_CACHE_DIR says, else XDG_CACHE_HOME, else the home", () => {
    const home = makeFolder()
    const HOME = home
    const XDG_CACHE_HOME = join(home, "xdg")
    expect(cacheDirectory({ HOME, XDG_CACHE_HOME, ALMANAC_CACHE_DIR: "/c" })).toBe("/c")
    expect(cacheDirectory({ HOME, XDG_CACHE_HOME })).toBe(join(home, "xdg", "almanac"))
    expect(cacheDirectory({ HOME, XDG_CACHE_HOME: "relative" })).toBe(`${home}/.cache/almanac`)
    expect(cacheDirectory({ HOME })).toBe(join(home, ".cache", "almanac"))
  })

  it("is in the checkout where the home cannot be written", () => {
    const HOME = join(makeFolder(), "no-folder")
    writeFileSync(HOME, "")
    expect(cacheDirectory({ HOME })).toBe(join(root, ".cache"))
  })
})
