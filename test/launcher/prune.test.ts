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

describe("the bootstrap", () => {
  it("runs no script of a package, and removes what is for other machines", async () => {
    const checkout = makeCheckout()
    const folder = join(checkout.root, "node_modules", bin)
    const own = join(folder, process.platform, process.arch)
    const other = join(folder, "elsewhere", process.arch)
    for (const path of [own, other]) mkdirSync(path, { recursive: true })
    await runNode(checkout, ["launcher/bootstrap.mjs", "start"]).ended
    expect(readFileSync(join(checkout.root, "npm-ran"), "utf8")).toContain("--ignore-scripts")
    expect([existsSync(own), existsSync(other)]).toEqual([true, false])
  })
})
