/**
 * Prepares a checkout to run: npm packages, Node 24, nats-server, restic, the built pages and, for
 * tests, the servers that they use. Does nothing if everything is installed. Requires only Node 18.
 *
 * Usage: `node launcher/bootstrap.mjs start|command|test|services|demo|peers`. The task `command`
 * is a start that serves no pages.
 */
import { realpathSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { missingPrograms } from "./binaries.mjs"
import { hasBundle } from "./bundle.mjs"
import { hasPackages } from "./packages.mjs"

/** Installs what the task needs. On failure it prints one line and exits with code 1. */
export const bootstrapOrExit = async (task) => {
  // Every command runs this, so the installer is loaded only if something is missing.
  if (task === "command" && hasPackages() && missingPrograms().length === 0 && hasBundle()) return
  const { install, say } = await import("./install.mjs")
  try {
    install(task)
  } catch (error) {
    say(error.message)
    process.exit(1)
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await bootstrapOrExit(process.argv[2] ?? "start")
}
