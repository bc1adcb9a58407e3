/**
 * Installs the npm packages and the pinned Node 24, exactly as the lockfile specifies. A lean
 * installation has what a server needs, a full one also what tests and checks need.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./cache.mjs"
import { folderSize, withProgress } from "./progress.mjs"
import { pruneModules } from "./prune.mjs"

const modules = join(root, "node_modules")
const stamp = join(modules, ".almanac-stamp")
const version_min = 24

const isPinned =
  process.platform === "linux" && (process.arch === "x64" || process.arch === "arm64")

/** The Node that runs the server: the pinned one on Linux, the machine's own elsewhere. */
export const projectNode = () =>
  isPinned ? join(modules, `node-linux-${process.arch}`, "bin", "node") : process.execPath

/**
 * The stamp of a current installation. It is not hashed, because loading node:crypto takes longer
 * than everything else here.
 */
const currentStamp = (is_full) => {
  const lock = readFileSync(join(root, "package-lock.json"), "utf8")
  return `${lock}${process.platform}-${process.arch}\n${is_full ? "" : "lean\n"}`
}

const read = (path) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

const packagesOf = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages ?? {}
  } catch {
    return {}
  }
}

/** Whether node_modules matches the lockfile, according to npm's own record of its installation. */
const isInstalled = (is_full) => {
  const locked = packagesOf(join(root, "package-lock.json"))
  const installed = packagesOf(join(modules, ".package-lock.json"))
  const names = Object.keys(locked).filter((name) => name !== "")
  return (
    Object.keys(installed).every((name) => name in locked) &&
    names.every((name) => {
      const { optional, peer, dev } = locked[name]
      if (installed[name] === undefined) return optional || peer || (dev && !is_full)
      return installed[name].version === locked[name].version && existsSync(join(root, name))
    })
  )
}

const isRecent = (version) => Number(/^v(\d+)/.exec(version ?? "")?.[1]) >= version_min

/**
 * Whether the installation is current; a full one also serves where a lean one is enough. Reads two
 * files and checks that a third exists.
 */
export const hasPackages = (is_full) => {
  const found = read(stamp)
  const is_stamped = found === currentStamp(true) || (!is_full && found === currentStamp(false))
  return is_stamped && (isPinned ? existsSync(projectNode()) : isRecent(process.version))
}

/** Number of lines of npm's error message to print: the reason comes first. */
const reason_lines_max = 6

/** Marks the installation as complete for the next start, after removing unusable files. */
const writeStamp = (is_full) => {
  mkdirSync(modules, { recursive: true })
  pruneModules(modules)
  writeFileSync(`${stamp}.${process.pid}`, currentStamp(is_full))
  renameSync(`${stamp}.${process.pid}`, stamp)
}

const checkNode = () => {
  const { status, stdout } = spawnSync(projectNode(), ["--version"], { encoding: "utf8" })
  if (status === 0 && isRecent(stdout)) return
  const reason = isPinned
    ? "the one from npm does not run on this machine (it requires glibc)"
    : `this is ${process.version}`
  throw new Error(
    `Almanac requires Node ${version_min}, but ${reason}. Install Node ${version_min} from ` +
      "https://nodejs.org, or on macOS with `brew install node@24`, and run this again.",
  )
}

/** Megabytes of the packages: unpacked by npm, and without the files that are removed then. */
const sizes = {
  full: { purpose: "tests and checks", unpacked: 1_050, kept: 770 },
  lean: { purpose: "serving", unpacked: 680, kept: 370 },
}

const runInstallation = async (is_full, total) => {
  const { runNpm } = await import("./npm.mjs")
  return withProgress("npm packages", () => runNpm(is_full), {
    bytes: () => folderSize(modules),
    total,
  })
}

/** Whether the last installation, for another lockfile, had the packages for development. */
const wasFull = () => read(stamp)?.endsWith("\nlean\n") === false

/**
 * Installs the packages. Where the packages for development were installed, it updates them as
 * well. Throws an error that says what to do manually.
 */
export const installPackages = async (is_wanted_full, say) => {
  const is_full = is_wanted_full || wasFull()
  // After a manual `npm ci`, only the stamp is missing.
  const is_complete = isInstalled(true)
  if (is_complete || (!is_full && isInstalled(false))) {
    checkNode()
    writeStamp(is_complete)
    return
  }
  const { purpose, unpacked, kept } = is_full ? sizes.full : sizes.lean
  say(
    `installing Node 24 and the npm packages for ${purpose}: ${unpacked} MB, of which about ` +
      `${kept} MB stay on disk`,
  )
  rmSync(stamp, { force: true })
  const { status, error, stderr } = await runInstallation(is_full, unpacked)
  if (status !== 0) {
    const lines = stderr.split("\n").filter((line) => /^npm error \S/.test(line))
    for (const line of lines.slice(0, reason_lines_max)) say(line)
    const reason = error ? error.message : `exit code ${status}`
    throw new Error(
      `npm failed (${reason}). Check the network and the disk, then run this again; ` +
        "`npm ci --ignore-scripts` shows the whole error.",
    )
  }
  if (!isInstalled(is_full)) {
    throw new Error(
      "node_modules does not match package-lock.json after the installation: run this again.",
    )
  }
  checkNode()
  writeStamp(is_full)
}
