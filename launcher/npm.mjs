/** Runs `npm ci`, whose arguments do not depend on the user's npmrc. */
import { spawn } from "node:child_process"
import { once } from "node:events"
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

/**
 * Installs the packages that a server needs, or all; returns npm's error, exit status and error
 * output.
 */
export const runNpm = async (is_full) => {
  const args = [...npm_arguments, is_full ? "--include=dev" : "--omit=dev", ...cacheArguments()]
  const cli = process.env.npm_execpath ?? ""
  // Use npm's own node and CLI, not the node in node_modules, which `npm ci` is about to delete.
  const [command, prefix] = basename(cli).startsWith("npm")
    ? [process.env.npm_node_execpath ?? process.execPath, [cli]]
    : ["npm", []]
  const options = { cwd: root, stdio: ["ignore", "ignore", "pipe"] }
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
