/** A command loads only what it needs, and the help of `almanac` loads no command at all. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

const root = join(import.meta.dirname, "../..")

/** Writes the URL of each loaded module to standard error. */
const hook = `import { registerHooks } from "node:module"
registerHooks({ load: (url, context, next) => {
  process.stderr.write(url + "\\n")
  return next(url, context)
} })`

/** The modules that a command line loads, as paths in the checkout. */
const loadedBy = (...words: ReadonlyArray<string>) => {
  const args = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, "main.ts", ...words]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root })
  assert.equal(status, 0)
  const paths = stderr
    .toString()
    .split("\n")
    .map((url) => url.split(`${root}/`).at(-1) ?? "")
  return { stdout: stdout.toString(), paths }
}

const startsWith =
  (...starts: ReadonlyArray<string>) =>
  (path: string) =>
    starts.some((start) => path.startsWith(start))

describe("what a command line loads", { timeout: 30_000 }, () => {
  it("is no command for the help of all of them", () => {
    const { stdout, paths } = loadedBy("--help")
    assert.include(stdout, "S3 buckets that hold backups")
    const own = paths.filter(startsWith("cli/", "server/", "gateway/", "actors/"))
    assert.sameMembers(own, [
      "cli/command-groups.ts",
      "cli/help.ts",
      "cli/root.ts",
      "cli/client/summaries.ts",
      "server/program.ts",
    ])
  })

  it("is one noun for a command of the API, without settings or what reads clouds", () => {
    const { paths } = loadedBy("jobs", "list", "--help")
    assert.include(paths, "cli/client/share-protection/job.ts")
    const others = ["cli/client/system", "cli/client/blob-storage", "schemas/settings.ts"]
    const libraries = ["node_modules/yaml", "node_modules/smol-toml", "node_modules/kysely"]
    assert.deepEqual(paths.filter(startsWith(...others, ...libraries)), [])
  })

  it("is a command that is named behind a flag", () => {
    const { stdout } = loadedBy("--config", "x.toml", "token", "--help")
    assert.include(stdout, "almanac token issue --project")
  })

  it("is every command for a completion script", () => {
    const { stdout } = loadedBy("--completions", "bash")
    assert.include(stdout, "--with-parent")
    assert.include(stdout, "preflight")
  })
})
