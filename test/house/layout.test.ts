/** The layout of the tree: packages with one entry each, and folders that a newcomer can scan. */
import { dirname, join, normalize } from "node:path"
import { describe, expect, it } from "vitest"
import { importsOf, readTree, type TreeFile } from "./tree.ts"

const tree = readTree()
const textOf = (path: string) => tree.find((file) => file.path === path)?.text ?? ""

const entries_max = 30
const same_prefix_max = 3
/** The README of a package fits on one screen. */
const readme_lines_max = 40

/** Folders that still exceed the limits; one that no longer does must be removed from here. */
const older_folders: ReadonlyArray<string> = []

/** Packages that implement ports of a service, and so import those ports and its schemas. */
const implemented: Readonly<Record<string, string>> = {
  cluster: "blob-storage",
  restic: "share-protection",
  volume: "blob-storage",
}

const code = /^(actors|adapters|cli|events|gateway|packages|projections|schemas|server)\/.+\.ts$/

/** Allowed kernel imports of a package: the ports that it implements, and plain helpers. */
const kernel = new Set([
  "#events/log.ts",
  "#events/log-guard.ts",
  "#events/log-line.ts",
  "#events/system/generation.ts",
  "#events/system/restoration.ts",
  "#events/trace.ts",
  "#projections/database.ts",
  "#projections/statement.ts",
  "#schemas/caller-network.ts",
  "#schemas/cause-text.ts",
  "#schemas/image-side.ts",
  "#schemas/metric.ts",
  "#schemas/system/checkpoint.ts",
])

const { imports } = JSON.parse(textOf("package.json"))
const packages = [
  ...new Set(tree.flatMap(({ path }) => /^packages\/([a-z-]+)\//.exec(path)?.[1] ?? [])),
]
const packageOf = (path: string) => /^packages\/([a-z-]+)\//.exec(path)?.[1]

/** Folders where only the number of entries is limited: tests, benchmarks, pages, the launcher. */
const beside = /^(bench|launcher|test|web|packages\/[a-z-]+\/test)\//

/** The names in each folder: files and folders alike. */
const folders = (files: RegExp) => {
  const found = new Map<string, Set<string>>()
  for (const { path } of tree.filter((file) => files.test(file.path))) {
    const parts = path.split("/")
    for (const [i, name] of parts.entries()) {
      const folder = parts.slice(0, i).join("/")
      if (folder !== "") found.set(folder, (found.get(folder) ?? new Set()).add(name))
    }
  }
  return found
}

const isTooLarge = (names: ReadonlySet<string>) => names.size > entries_max

const isCrowded = (names: ReadonlySet<string>) => {
  if (isTooLarge(names)) return true
  const prefixes = [...names].flatMap((name) => /^([a-z0-9]+)-.*\.ts$/.exec(name)?.[1] ?? [])
  return prefixes.some((one) => prefixes.filter((same) => same === one).length > same_prefix_max)
}

const in_tests = /(^|\/)(test|bench)\//

/** Imports that bypass the entry of another package. */
const deepImports = ({ path, text }: TreeFile) =>
  importsOf(text).filter((from) => {
    const target = from.startsWith(".") ? normalize(join(dirname(path), from)) : from.slice(1)
    const entered = packageOf(target)
    if (entered === undefined || entered === packageOf(path)) return false
    // Tests and benchmarks share the code that builds their input.
    return !(in_tests.test(path) && in_tests.test(target))
  })

const isPortOf = (service: string, from: string) =>
  from.startsWith(`#actors/${service}/ports/`) || from.startsWith(`#schemas/${service}/`)

/** Imports of a package that are neither its own, nor a port, nor another package. */
const foreignImports = ({ path, text }: TreeFile) =>
  importsOf(text).filter((from) => {
    const service = implemented[packageOf(path) ?? ""]
    if (service !== undefined && isPortOf(service, from)) return false
    if (from.startsWith("#")) return !kernel.has(from) && !packages.includes(from.slice(1))
    if (!from.startsWith(".")) return false
    return packageOf(normalize(join(dirname(path), from))) !== packageOf(path)
  })

const inPackage = /^packages\/[a-z-]+\/(?!test\/).+\.ts$/

describe("a folder", () => {
  it(`has at most ${entries_max} entries, and no prefix is shared by four files`, () => {
    const crowded = [...folders(code)].flatMap(([at, names]) => (isCrowded(names) ? [at] : []))
    expect(crowded.toSorted()).toEqual(older_folders)
    expect(isCrowded(new Set(["a-b.ts", "a-c.ts", "a-d.ts", "a.ts"]))).toBe(false)
    expect(isCrowded(new Set(["a-b.ts", "a-c.ts", "a-d.ts", "a-e.ts"]))).toBe(true)
    expect(isCrowded(new Set(Array.from({ length: 31 }, (_, i) => `${i}`)))).toBe(true)
  })

  it(`of tests, benchmarks, pages and the launcher has at most ${entries_max} entries`, () => {
    const large = [...folders(beside)].flatMap(([at, names]) => (isTooLarge(names) ? [at] : []))
    expect(large).toEqual([])
    expect(folders(beside).has("test")).toBe(true)
  })
})

describe("a package", () => {
  it.each(packages)("%s has one door, and a README of one screen", (name) => {
    expect(imports[`#${name}`]).toBe(`./packages/${name}/${name}.ts`)
    expect(textOf(`packages/${name}/${name}.ts`)).not.toBe("")
    const lines = textOf(`packages/${name}/README.md`).split("\n").length
    expect(lines).toBeGreaterThan(1)
    expect(lines).toBeLessThanOrEqual(readme_lines_max)
  })

  it("is imported by its door alone", () => {
    const deep = Object.values<string>(imports).filter((path) => path.startsWith("./packages/"))
    expect(deep).toEqual(packages.toSorted().map((name) => `./packages/${name}/${name}.ts`))
    const found = tree.flatMap((file) => deepImports(file).map((from) => `${file.path}: ${from}`))
    expect(found).toEqual([])
    const text = 'import { a } from "../packages/threads/call.ts"\n'
    expect(deepImports({ path: "test/a.ts", text })).toHaveLength(1)
  })

  // The package disables that library's telemetry. Source: decision 0201.
  it("onnx-runtime alone imports onnxruntime-node", () => {
    const importers = tree.filter(({ text }) => importsOf(text).includes("onnxruntime-node"))
    expect(importers.map(({ path }) => path)).toEqual(["packages/onnx-runtime/onnx-runtime.ts"])
  })

  it("knows no service but the ports that it implements, other packages, and the kernel", () => {
    const found = tree
      .filter(({ path }) => inPackage.test(path))
      .flatMap((file) => foreignImports(file).map((from) => `${file.path}: ${from}`))
    expect(found).toEqual([])
    for (const [name, service] of Object.entries(implemented)) {
      const inside = tree.filter(({ path }) => path.startsWith(`packages/${name}/`))
      const uses = inside.some(({ text }) => importsOf(text).some((one) => isPortOf(service, one)))
      expect(uses, `${name} implements a port of ${service}`).toBe(true)
    }
    const path = "packages/threads/a.ts"
    const text = 'import { a } from "#schemas/blob-storage/blob.ts"\nimport "../../main.ts"\n'
    expect(foreignImports({ path, text })).toHaveLength(2)
  })
})
