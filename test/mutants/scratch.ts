/** A copy of a tree in a temporary folder, for changes that must not affect the tree itself. */
import { execFileSync, spawn } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"

/**
 * Paths that git ignores and tests need; linked, because these files are never written in place.
 */
const linked = ["node_modules", ".cache", "web/dist"]

/** Folders that test runners write to; a link would change the tree's own. */
const own = ["node_modules/.vite", "node_modules/.vite-temp", "node_modules/.vitest-cache"]

export interface Outcome {
  readonly outcome: "passed" | "failed" | "timed out"
  /** Test files that failed, and the first failed test. */
  readonly failed: ReadonlyArray<string>
  readonly test: string
}

export interface Scratch {
  readonly write: (path: string, text: string) => void
  /** Runs test files until the first failure or the limit. */
  readonly run: (tests: ReadonlyArray<string>, limit_s: number) => Promise<Outcome>
  readonly remove: () => void
}

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly assertionResults: ReadonlyArray<{
      readonly status: string
      readonly fullName: string
    }>
  }>
}

const readReport = (path: string, folder: string): Pick<Outcome, "failed" | "test"> => {
  if (!existsSync(path)) return { failed: [], test: "" }
  const { testResults }: Report = JSON.parse(readFileSync(path, "utf8"))
  const failed = testResults.filter(({ status }) => status === "failed")
  const test = failed
    .flatMap(({ assertionResults }) => assertionResults)
    .find(({ status }) => status === "failed")
  return {
    failed: failed.map(({ name }) => name.slice(folder.length + 1)),
    test: test?.fullName ?? "",
  }
}

/** Stops the runner and the servers that its tests started. */
const endGroup = (pid: number | undefined) => {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL")
  } catch {
    // It has already exited.
  }
}

/** Copies the tree's tracked and untracked files, and links ignored files that tests need. */
export const makeScratch = (tree: string): Scratch => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-mutants-"))
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
  const paths = execFileSync("git", list, { cwd: tree, encoding: "utf8" }).split("\0")
  for (const path of paths.filter((one) => one !== "" && existsSync(join(tree, one)))) {
    cpSync(join(tree, path), join(folder, path))
  }
  for (const path of linked.filter((one) => existsSync(join(tree, one)))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    execFileSync("cp", ["-al", join(tree, path), join(folder, path)])
  }
  for (const path of own) rmSync(join(folder, path), { recursive: true, force: true })
  let running: number | undefined
  const report = join(folder, "test-results/mutants.json")
  const vitest = join(folder, "node_modules/vitest/vitest.mjs")
  return {
    write: (path, text) => {
      writeFileSync(join(folder, path), text)
    },
    run: async (tests, limit_s) => {
      rmSync(report, { force: true })
      const options = ["--project=test", "--bail=1", "--reporter=json", `--outputFile=${report}`]
      const files = tests.map((test) => join(folder, test))
      const child = spawn(process.execPath, [vitest, "run", ...options, ...files], {
        cwd: folder,
        stdio: "ignore",
        detached: true,
      })
      running = child.pid
      const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
      const stop = new AbortController()
      const limit = sleep(limit_s * 1000, "late", { signal: stop.signal }).catch(() => "late")
      const code = await Promise.race([ended, limit])
      stop.abort()
      endGroup(running)
      running = undefined
      if (code === "late") return { outcome: "timed out", failed: [], test: "" }
      if (code === 0) return { outcome: "passed", failed: [], test: "" }
      return { outcome: "failed", ...readReport(report, folder) }
    },
    remove: () => {
      endGroup(running)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
