/**
 * Finds external programs: at the configured path, on PATH, or in the project's cache. Used by the
 * bootstrap, which downloads missing ones, and by the server, which starts them.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { cacheDirectory } from "./cache.mjs"

/**
 * Each external program: its minimum version, the arguments that print its version, and where to
 * get it.
 */
export const programs = {
  // 2.15 introduced api.level 5: atomic batches and message schedules.
  "nats-server": {
    version_min: [2, 15],
    version_args: ["--version"],
    source: "https://nats.io/download, or `brew install nats-server` on macOS",
  },
  // 0.18 supports the repository format of the backups.
  restic: {
    version_min: [0, 18],
    version_args: ["version"],
    source: "https://restic.net, or `brew install restic` on macOS",
  },
}

/** A program that takes longer to print its version is skipped. */
const version_timeout_ms = 10_000

/** The cache folder for downloaded programs. */
export const programFolder = () => join(cacheDirectory(), "bin")

const isRecent = (version, version_min) => {
  const parts = version.split(".").map(Number)
  const at = version_min.findIndex((minimum, index) => parts[index] !== minimum)
  return at === -1 || parts[at] > version_min[at]
}

// Versions are cached by path, size and modification time, so that a start needs no child process.
const versionsPath = () => join(cacheDirectory(), "versions.json")

const cachedVersions = () => {
  try {
    return JSON.parse(readFileSync(versionsPath(), "utf8"))
  } catch {
    return {}
  }
}

const cacheVersion = (path, entry) => {
  const scratch = `${versionsPath()}.${process.pid}`
  try {
    mkdirSync(cacheDirectory(), { recursive: true })
    writeFileSync(scratch, JSON.stringify({ ...cachedVersions(), [path]: entry }))
    renameSync(scratch, versionsPath())
  } catch {
    // Without a writable cache, the next start only runs one more child process.
  }
}

const readVersion = (path, { version_args }) => {
  try {
    const options = {
      encoding: "utf8",
      timeout: version_timeout_ms,
      stdio: ["ignore", "pipe", "pipe"],
    }
    return /\d+\.\d+(\.\d+)?/.exec(execFileSync(path, version_args, options))?.[0]
  } catch {
    return undefined
  }
}

const statOf = (path) => {
  try {
    return statSync(path)
  } catch {
    // The file does not exist, or this user may not enter its folder.
    return undefined
  }
}

/**
 * Checks a candidate: returns its version, or the reason to skip it; undefined if there is no file.
 */
const examine = (name, path) => {
  const stats = statOf(path)
  if (!stats?.isFile()) return undefined
  const { size, mtimeMs } = stats
  const known = cachedVersions()[path]
  const isKnown = known?.size === size && known?.mtimeMs === mtimeMs
  const version = isKnown ? known.version : readVersion(path, programs[name])
  if (!version) return { path, reason: "does not run" }
  if (!isKnown) cacheVersion(path, { size, mtimeMs, version })
  if (isRecent(version, programs[name].version_min)) return { path, version }
  return { path, reason: `is ${version}, which is too old` }
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

/** The program to run. A configured path is the only candidate, so that a wrong one is an error. */
export const findBinary = (name, options) => search(name, options).found

/** An external bus needs no local nats-server, and the server itself checks a configured path. */
const isNeeded = (name) =>
  name !== "nats-server" || !(process.env.ALMANAC_NATS__URL || process.env.ALMANAC_NATS__BINARY)

/** Names of the programs that are needed on this machine but not found. */
export const missingPrograms = () =>
  Object.keys(programs).filter((name) => isNeeded(name) && findBinary(name) === undefined)

/** A one-line message: what is missing, what was skipped and why, and where to get it. */
export const missingBinary = (name, options = {}) => {
  const { version_min, source } = programs[name]
  const { skipped } = search(name, options)
  const found = skipped.map(({ path, reason }) => `${path} ${reason}`)
  const none = options.configured ? `not found at ${options.configured}` : "not on PATH"
  const why = found.length > 0 ? found.join("; ") : none
  const wanted = `${name} ${version_min.join(".")} or later`
  return `${wanted} is required (${why}): install it from ${source}.`
}
