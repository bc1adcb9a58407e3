/**
 * Makes a fresh clone able to run: npm packages, Node 24, nats-server and restic. Does nothing
 * when all is there. Needs nothing but Node 18; `node launcher/bootstrap.mjs start|test`.
 */
import { realpathSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { findBinary, missingBinary, programs } from "./binaries.mjs"
import { root } from "./cache.mjs"
import { fetchFromDebian, hasDebian } from "./debian.mjs"
import { withLock } from "./lock.mjs"
import { hasPackages, installPackages } from "./packages.mjs"

const say = (line) => process.stderr.write(`almanac: ${line}\n`)

/** An outside bus needs no server of ours, and a configured path is the server's to judge. */
const isNeeded = (name) =>
  name !== "nats-server" || !(process.env.ALMANAC_NATS__URL || process.env.ALMANAC_NATS__BINARY)

/** restic serves share protection alone: without it the other services start all the same. */
const isRequired = (name, task) =>
  name !== "restic" || task === "test" || process.env.ALMANAC_REQUIRE_ALL === "1"

const missingPrograms = () =>
  Object.keys(programs).filter((name) => isNeeded(name) && findBinary(name) === undefined)

const fetchPrograms = (names) => {
  if (!hasDebian()) return
  say(`fetching ${names.join(" and ")} from Debian's signed archive into the cache (about 60 MB)`)
  const reason = fetchFromDebian(names)
  if (reason) say(`Debian's archive did not serve: ${reason}`)
}

/** Installs what `start` or `test` lacks. Throws an error whose message is for a person. */
export const bootstrap = (task) => {
  if (hasPackages() && missingPrograms().length === 0) return
  const install = () => {
    if (!hasPackages()) installPackages(say)
    const names = missingPrograms()
    if (names.length > 0) fetchPrograms(names)
  }
  withLock(join(root, ".cache", "bootstrap.lock"), install, say)
  const missing = missingPrograms()
  for (const name of missing.filter((name) => !isRequired(name, task))) {
    say(`going on without restic. ${missingBinary(name)}`)
  }
  const required = missing.filter((name) => isRequired(name, task))
  if (required.length > 0) throw new Error(required.map((name) => missingBinary(name)).join(" "))
}

/** The same at a command line: one line and exit code 1 for what could not be installed. */
export const bootstrapOrExit = (task) => {
  try {
    bootstrap(task)
  } catch (error) {
    say(error.message)
    process.exit(1)
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  bootstrapOrExit(process.argv[2] ?? "start")
}
