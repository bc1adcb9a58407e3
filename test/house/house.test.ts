/** The house rules that a machine can check. Each failure says how to fix it. */
import { describe, expect, it } from "vitest"
import { missingPlatforms } from "../../launcher/lockfile.mjs"
import { rules } from "./rules.ts"
import { filesNamedIn, ownExports, readTree, unusedExports } from "./tree.ts"

const tree = readTree()
const textOf = (path: string) => tree.find((file) => file.path === path)?.text ?? ""

/** These two files contain a broken example of each rule. */
const is_exempt = /^test\/house\/(rules|house\.test)\.ts$/

/** Files whose exports predate the rule and should be made private. */
const exported_still = new Set([
  "packages/cluster/replicas/list.ts",
  "packages/models/classes.ts",
  "packages/models/onnx/protobuf.ts",
  "packages/predictor/images/image.ts",
  "packages/trainer/files.ts",
  "packages/trainer/job.ts",
  "packages/trainer/optimizer.ts",
  "packages/volume/log/record.ts",
  "packages/volume/log/segments.ts",
  "packages/volume/reads/page-cache.ts",
])

describe("the house", () => {
  for (const { name, files, problems } of rules) {
    it(name, () => {
      const found = tree
        .filter(({ path }) => files.test(path) && !is_exempt.test(path))
        .flatMap((file) => problems(file).map((problem) => `${file.path}:${problem}`))
      expect(found).toEqual([])
    })
  }
})

describe("each rule sees the file that breaks it", () => {
  for (const { name, files, problems, broken } of rules) {
    it(name, () => {
      expect(broken.path).toMatch(files)
      expect(problems(broken)).not.toEqual([])
    })
  }
})

describe("the tree", () => {
  it("holds no dead file", () => {
    const entry = /\.(test|services)\.ts$|\.config\.ts$|\.d\.mts$|^docs\/examples\/|^main\.ts$/
    const named = new Set(tree.flatMap((file) => filesNamedIn(file)))
    const dead = tree
      .map(({ path }) => path)
      .filter((path) => /\.(ts|mjs)$/.test(path) && !entry.test(path) && !named.has(path))
    expect(dead).toEqual([])
  })

  it("holds no dead export", () => {
    expect(unusedExports(tree)).toEqual([])
    // A name used only by its own type and a comment is also unused.
    const text = "/** An A. */\nexport const A = 1\nexport type A = typeof A.Type\n"
    expect(unusedExports([{ path: "a.ts", text }])).toEqual(["a.ts: A", "a.ts: A"])
  })

  it("exports no constant or function that only its own file uses", () => {
    const found = ownExports(tree).map((one) => one.split(":", 1)[0] ?? "")
    // When you fix a file's exports, remove its line above too.
    expect([...new Set(found)]).toEqual([...exported_still])
    const text = "export const one = 1\nexport const two = one\nexport type Two = typeof two\n"
    const other = { path: "b.ts", text: 'import { two } from "./a.ts"\n' }
    expect(ownExports([{ path: "a.ts", text }, other])).toEqual(["a.ts: one"])
  })

  it("has the documents that a newcomer looks for", () => {
    const wanted = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"]
    expect(wanted.filter((path) => textOf(path) === "")).toEqual([])
  })
})

describe("the packages", () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(textOf("package.json"))
  const all: Record<string, string> = {
    ...dependencies,
    ...devDependencies,
    ...optionalDependencies,
  }

  it("have exact versions", () => {
    const loose = Object.entries(all).filter(
      ([, version]) => !/^(npm:[\w-]+@)?\d+\.\d+\.\d+$/.test(version),
    )
    expect(loose).toEqual([])
    expect(all.effect).toBe(all["@effect/platform-node"])
  })

  it("are each explained in the decision about dependencies", () => {
    const decision = textOf("docs/decisions/0004-dependencies.md")
    expect(Object.keys(all).filter((name) => !decision.includes(`\`${name}\``))).toEqual([])
  })

  it("are all in the lockfile, for every platform (node launcher/lockfile.mjs)", () => {
    const missing = missingPlatforms(JSON.parse(textOf("package-lock.json")))
    expect(Object.keys(missing)).toEqual([])
  })
})
