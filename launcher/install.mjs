/** Installs what a task needs, printing a line for each step, and then bundles the program. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { missingBinary, missingPrograms } from "./binaries.mjs"
import { canBundle, hasBundle } from "./bundle.mjs"
import { isWritable, root } from "./cache.mjs"
import { fetchFromDebian, hasDebian } from "./debian.mjs"
import { withLock } from "./lock.mjs"
import { hasPackages, installPackages, projectNode } from "./packages.mjs"
import { buildPage, hasPage } from "./page.mjs"
import { fetchTree, findTree, trees } from "./trees.mjs"

/** Bundling takes two seconds, longer on a busy machine. */
const bundle_ms_max = 120_000

export const say = (line) => process.stderr.write(`almanac: ${line}\n`)

const requiresAll = () => process.env.ALMANAC_REQUIRE_ALL === "1"

/** Only share protection uses restic: the other services start without it. */
const isRequired = (name, task) =>
  name !== "restic" || task === "test" || task === "services" || requiresAll()

/** The trees of each task. Only tests, demos and benchmarks need any. */
const treesOf = {
  test: ["radosgw", "chromium", "postgresql"],
  services: [
    "radosgw",
    "chromium",
    "postgresql",
    "openstack",
    "pandas",
    "pillow",
    "prometheus",
    "shells",
  ],
  demo: ["radosgw"],
  // Servers that manual benchmarks compare with.
  peers: ["radosgw", "pandas", "fastapi", "swift", "nginx", "redis", "postgresql"],
}

const missingTrees = (task) => (treesOf[task] ?? []).filter((name) => findTree(name) === undefined)

const fetchPrograms = (names) => {
  if (!hasDebian()) return
  say(`fetching ${names.join(" and ")} from Debian's signed archive into the cache (about 60 MB)`)
  const reason = fetchFromDebian(names)
  if (reason) say(`Debian's archive did not serve: ${reason}`)
}

const fetchTrees = (names) => {
  if (!hasDebian()) return
  for (const name of names) {
    const size = `about ${trees[name].megabytes} MB`
    const from = "from Debian's signed archive into the cache"
    say(`fetching ${name} and what it needs ${from} (${size})`)
    const reason = fetchTree(name)
    if (reason) say(`Debian's archive did not serve: ${reason}`)
  }
}

/** A one-line message about a tree that could not be installed. */
const missingTree = (task) => (name) => {
  const users = task === "peers" ? "benchmarks" : "tests"
  return `${name} is missing, which ${users} need: install it by ${trees[name].install_command}.`
}

const firstLine = ({ error, stderr }) =>
  error?.message ?? /^\w*Error.*$/m.exec(stderr)?.[0] ?? stderr.trim().split("\n", 1)[0]

/** A start from the bundle is three times as fast; without one, Node runs the sources. */
const bundleForStart = () => {
  if (!canBundle() || hasBundle() || !isWritable(root)) return
  const result = spawnSync(projectNode(), [join(root, "launcher", "bundle.mjs")], {
    cwd: root,
    encoding: "utf8",
    timeout: bundle_ms_max,
  })
  if (result.status !== 0) say(`going on without a bundle: ${firstLine(result)}`)
}

/** The services also work without their pages. */
const pageForServer = () => {
  if (hasPage()) return
  const build = () => {
    // Another start may have built them in the meantime.
    if (hasPage()) return undefined
    say("building the pages")
    return buildPage()
  }
  const reason = isWritable(root)
    ? withLock(join(root, ".cache", "bootstrap.lock"), build, say)
    : `${root} cannot be written`
  if (!reason) return
  const missing = `the pages could not be built: ${reason}`
  if (requiresAll()) throw new Error(missing)
  say(`going on without. ${missing}`)
}

const installFor = (task) => {
  if (hasPackages() && missingPrograms().length + missingTrees(task).length === 0) return
  const install = () => {
    if (!hasPackages()) installPackages(say)
    const names = missingPrograms()
    if (names.length > 0) fetchPrograms(names)
    fetchTrees(missingTrees(task))
  }
  withLock(join(root, ".cache", "bootstrap.lock"), install, say)
  const missing = missingPrograms()
  for (const name of missing.filter((name) => !isRequired(name, task))) {
    say(`going on without restic. ${missingBinary(name)}`)
  }
  const absent = missingTrees(task).map(missingTree(task))
  if (!requiresAll()) for (const line of absent) say(`going on without. ${line}`)
  const required = missing
    .filter((name) => isRequired(name, task))
    .map((name) => missingBinary(name))
  if (requiresAll()) required.push(...absent)
  if (required.length > 0) throw new Error(required.join(" "))
}

/** Installs what the task needs. Throws an error with a message for users. */
export const install = (task) => {
  installFor(task)
  if (task !== "command") pageForServer()
  // Tests start the program as users do, hundreds of times.
  if (["start", "command", "test", "services"].includes(task)) bundleForStart()
}
