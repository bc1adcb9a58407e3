/**
 * The previous release, extracted from the repository's history and run next to this one, with the
 * packages of this one. Without the history, as in a shallow clone, its tests are skipped with one
 * line.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe } from "vitest"
import { describeAbsent } from "../world/programs/absent.ts"

const root = dirname(dirname(import.meta.dirname))

/**
 * The commit of the previous release: the last one whose nodes send copies without the time of
 * their last put. At each release, set it here and renew the output of `test/upgrade/renew.ts`
 * (decision 0148).
 */
const previous_commit = "246ef9b050715813fc473edd0b10c8bca7c3d59b"

const archive_bytes_max = 256 * 1024 * 1024

const git = (...args: ReadonlyArray<string>) =>
  execFileSync("git", args, { cwd: root, maxBuffer: archive_bytes_max, stdio: "pipe" })

const has_history = (() => {
  try {
    git("cat-file", "-e", `${previous_commit}^{commit}`)
    return true
  } catch {
    return false
  }
})()

/** A new folder with the previous release, ready to run. */
export const takeOut = () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "almanac-previous-")))
  execFileSync("tar", ["-x", "-C", folder], { input: git("archive", previous_commit) })
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  return folder
}

/** Tests against the previous release, whose folder `place` returns. */
export const describePrevious = (name: string, tests: (place: () => string) => void) => {
  if (!has_history) {
    const why = "The release before is not in this clone: git fetch --unshallow."
    return describeAbsent(name, "the repository's history", why, false)
  }
  return describe(name, () => {
    let folder = ""
    beforeAll(() => {
      folder = takeOut()
    })
    afterAll(() => rmSync(folder, { recursive: true, force: true }))
    tests(() => folder)
  })
}
