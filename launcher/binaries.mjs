/**
 * Where the outside programs are: the configured path, PATH, the project's cache. Shared by the
 * bootstrap, which fetches what is missing, and by the server, which starts what is found.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { cacheDirectory } from "./cache.mjs"

/** What is needed, from which version on, and how each program is asked for its version. */
export const programs = {
  // 2.15 brought api.level 5: atomic batches and message schedules.
  "nats-server": {
    version_min: [2, 15],
    ask: ["--version"],
    by_hand: "https://nats.io/download, or `brew install nats-server` on macOS",
  },
  // 0.18 reads and writes the repository format that backups are kept in.
  restic: {
    version_min: [0, 18],
    ask: ["version"],
    by_hand: "https://restic.net, or `brew install restic` on macOS",
  },
}

/** A program that does not say its version by then is skipped. */
const ask_timeout_ms = 10_000

/** The folder of the cache that holds the programs. */
export const programFolder = () => join(cacheDirectory(), "bin")

const isRecent = (version, version_min) => {
  const parts = version.split(".").map(Number)
  const at = version_min.findIndex((least, index) => parts[index] !== least)
  return at === -1 || parts[at] > version_min[at]
}

// Versions are remembered by path, size and time of change, so that a start needs no child process.
const memoryPath = () => join(cacheDirectory(), "versions.json")

const remembered = () => {
  try {
    return JSON.parse(readFileSync(memoryPath(), "utf8"))
  } catch {
    return {}
  }
}

const remember = (path, entry) => {
  const scratch = `${memoryPath()}.${process.pid}`
  try {
    mkdirSync(cacheDirectory(), { recursive: true })
    writeFileSync(scratch, JSON.stringify({ ...remembered(), [path]: entry }))
    renameSync(scratch, memoryPath())
  } catch {
    // A cache that cannot be written costs one child process at the next start, and nothing else.
  }
}

const askVersion = (path, { ask }) => {
  try {
    const options = { encoding: "utf8", timeout: ask_timeout_ms, stdio: ["ignore", "pipe", "pipe"] }
    return /\d+\.\d+(\.\d+)?/.exec(execFileSync(path, ask, options))?.[0]
  } catch {
    return undefined
  }
}

const describeFile = (path) => {
  try {
    return statSync(path)
  } catch {
    // No such file, or a folder of PATH that this user may not enter.
    return undefined
  }
}

/** One candidate: its version, or the reason why it does not do. Nothing where there is no file. */
const examine = (name, path) => {
  const stats = describeFile(path)
  if (!stats?.isFile()) return undefined
  const { size, mtimeMs } = stats
  const known = remembered()[path]
  const isKnown = known?.size === size && known?.mtimeMs === mtimeMs
  const version = isKnown ? known.version : askVersion(path, programs[name])
  if (!version) return { path, reason: "does not run" }
  if (!isKnown) remember(path, { size, mtimeMs, version })
  if (isRecent(version, programs[name].version_min)) return { path, version }
  return { path, reason: `is ${version}, too old` }
}

const search = (name, { configured, environment = process.env } = {}) => {
  const folders = (environment.PATH ?? "").split(delimiter).filter(Boolean)
  const paths = configured
    ? [resolve(configured)]
    : [...folders.map((folder) => resolve(folder, name)), join(programFolder(), name)]
  const skipped = []
  for (const path of paths) {
    const candidate = examine(name, path)
    if (candidate?.version) return { found: candidate, skipped }
    if (candidate) skipped.push(candidate)
  }
  return { found: undefined, skipped }
}

/** The program to run. A configured path is looked at alone: a wrong one is no silent other. */
export const findBinary = (name, options) => search(name, options).found

/** An outside bus needs no server of ours, and a configured path is the server's to judge. */
const isNeeded = (name) =>
  name !== "nats-server" || !(process.env.ALMANAC_NATS__URL || process.env.ALMANAC_NATS__BINARY)

/** The names of the programs that are needed here and are not found. */
export const missingPrograms = () =>
  Object.keys(programs).filter((name) => isNeeded(name) && findBinary(name) === undefined)

/** One line for a person: what is missing, what was skipped and why, what to install by hand. */
export const missingBinary = (name, options = {}) => {
  const { version_min, by_hand } = programs[name]
  const { skipped } = search(name, options)
  const found = skipped.map(({ path, reason }) => `${path} ${reason}`)
  const none = options.configured ? `nothing at ${options.configured}` : "not on PATH"
  const why = found.length > 0 ? found.join("; ") : none
  return `${name} ${version_min.join(".")} or later is needed (${why}): install it from ${by_hand}.`
}
