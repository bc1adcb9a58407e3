/**
 * Prepares a checkout to run: npm packages, Node 24, nats-server, restic, the built pages and, for
 * tests, the servers that they use. Does nothing if everything is installed. Requires only Node 18.
 *
 * Usage: `node launcher/bootstrap.mjs TASK`. Each task installs what it needs:
 *
 * - `start`: the packages, programs and pages of a server.
 * - `command`: as `start`, without the pages.
 * - `client`: only the packages, for commands that call a running server.
 * - `check`: also the packages for development.
 * - `test`, `services`, `peers`: also the servers of tests or benchmarks.
 * - `demo`: as `command`, with the S3 server of `almanac demo s3`.
 */
import { realpathSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { missingPrograms } from "./binaries.mjs"
import { hasBundle } from "./bundle.mjs"
import { hasPackages } from "./packages.mjs"

/** Installs what the task needs. On failure it prints one line and exits with code 1. */
export const bootstrapOrExit = async (task) => {
  // Every command runs this, so the installer is loaded only if something is missing.
  const has_programs = () => task === "client" || missingPrograms().length === 0
  const is_command = task === "client" || task === "command"
  if (is_command && hasPackages(false) && has_programs() && hasBundle()) return
  const [{ install }, { say }] = await Promise.all([
    import("./install.mjs"),
    import("./progress.mjs"),
  ])
  try {
    await install(task)
  } catch (error) {
    say(error.message)
    process.exit(1)
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await bootstrapOrExit(process.argv[2] ?? "start")
}
