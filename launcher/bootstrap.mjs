/**
 * Makes a fresh clone able to run: npm packages, Node 24, nats-server and restic, the built page,
 * and for tests the servers that they try themselves on. Does nothing when all is there. Needs
 * nothing but Node 18; `node launcher/bootstrap.mjs start|command|test|services|demo|peers`. A
 * `command` is a start that serves no pages.
 */
import { realpathSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { missingPrograms } from "./binaries.mjs"
import { hasBundle } from "./bundle.mjs"
import { hasPackages } from "./packages.mjs"

/** Installs what the task lacks; one line and exit code 1 for what could not be installed. */
export const bootstrapOrExit = async (task) => {
  // Each command passes here: what installs is loaded only when something is missing.
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
