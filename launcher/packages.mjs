/** Installs the npm packages and the pinned Node 24, exactly as the lockfile specifies. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, join } from "node:path"
import { cacheDirectory, isWritable, root } from "./cache.mjs"
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
const currentStamp = () =>
  `${readFileSync(join(root, "package-lock.json"), "utf8")}${process.platform}-${process.arch}\n`

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
const isInstalled = () => {
  const locked = packagesOf(join(root, "package-lock.json"))
  const installed = packagesOf(join(modules, ".package-lock.json"))
  const names = Object.keys(locked).filter((name) => name !== "")
  return (
    Object.keys(installed).every((name) => name in locked) &&
    names.every((name) => {
      if (installed[name] === undefined) return locked[name].optional === true
      return installed[name].version === locked[name].version && existsSync(join(root, name))
    })
  )
}

const isRecent = (version) => Number(/^v(\d+)/.exec(version ?? "")?.[1]) >= version_min

/** Whether the installation is current. Reads two files and checks that a third exists. */
export const hasPackages = () =>
  read(stamp) === currentStamp() &&
  (isPinned ? existsSync(projectNode()) : isRecent(process.version))

const npm_arguments = [
  "ci",
  // A user's npmrc must not change what is installed. No dependency needs its scripts, and older
  // npm would compile better-sqlite3 although its package contains the binary.
  "--ignore-scripts",
  "--include=dev",
  "--include=optional",
  "--include=peer",
  "--bin-links=true",
  "--package-lock=true",
  "--engine-strict=false",
  // The lockfile has the hashes, so cached packages need no request.
  "--prefer-offline",
  "--no-audit",
  "--no-fund",
  "--no-progress",
  "--no-update-notifier",
  "--loglevel=error",
]

/** npm prints little at this log level; the rest is in its debug log. */
const output_max_bytes = 16 * 1024 * 1024
/** Number of lines of npm's error message to print: the reason comes first. */
const reason_lines_max = 6

/** npm's cache is in the home folder, which a service account may not have. */
const cacheArguments = () => {
  const cache = process.env.npm_config_cache || join(process.env.HOME || homedir(), ".npm")
  return isWritable(cache) ? [] : [`--cache=${join(cacheDirectory(), "npm")}`]
}

const runNpm = () => {
  const args = [...npm_arguments, ...cacheArguments()]
  const cli = process.env.npm_execpath ?? ""
  // Use npm's own node and CLI, not the node in node_modules, which `npm ci` is about to delete.
  const [command, prefix] = basename(cli).startsWith("npm")
    ? [process.env.npm_node_execpath ?? process.execPath, [cli]]
    : ["npm", []]
  const options = { cwd: root, encoding: "utf8", maxBuffer: output_max_bytes }
  return spawnSync(command, [...prefix, ...args], options)
}

/** Marks the installation as complete for the next start, after removing unusable files. */
const writeStamp = () => {
  mkdirSync(modules, { recursive: true })
  pruneModules(modules)
  writeFileSync(`${stamp}.${process.pid}`, currentStamp())
  renameSync(`${stamp}.${process.pid}`, stamp)
}

const checkNode = () => {
  const { status, stdout } = spawnSync(projectNode(), ["--version"], { encoding: "utf8" })
  if (status === 0 && isRecent(stdout)) return
  const reason = isPinned
    ? "the one from npm does not run here (it needs glibc)"
    : `this is ${process.version}`
  throw new Error(
    `Node ${version_min} is needed and ${reason}: install it by hand from https://nodejs.org, ` +
      "or `brew install node@24` on macOS, and run this again.",
  )
}

/** Installs the packages. Throws an error that says what to do manually. */
export const installPackages = (say) => {
  // A manual `npm install` needs only the stamp.
  if (isInstalled()) {
    checkNode()
    writeStamp()
    return
  }
  say("installing the npm packages of the lockfile, with Node 24 (about 820 MB)")
  rmSync(stamp, { force: true })
  const { status, error, stderr } = runNpm()
  if (status !== 0) {
    const lines = (stderr ?? "").split("\n").filter((line) => /^npm error \S/.test(line))
    for (const line of lines.slice(0, reason_lines_max)) say(line)
    const reason = error ? error.message : `exit ${status}`
    throw new Error(`npm did not finish (${reason}): run \`npm ci --ignore-scripts\` by hand.`)
  }
  if (!isInstalled()) throw new Error("node_modules is not what the lockfile says: run this again.")
  checkNode()
  writeStamp()
}
