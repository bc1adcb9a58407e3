/** Installs what a task needs, prints a line for each step, and then bundles the program. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { missingBinary, missingPrograms } from "./binaries.mjs"
import { canBundle, hasBundle } from "./bundle.mjs"
import { isWritable, root } from "./cache.mjs"
import { fetchFromDebian, hasDebian } from "./debian.mjs"
import { withLock } from "./lock.mjs"
import { hasPackages, installPackages, projectNode } from "./packages.mjs"
import { buildPage, hasPage } from "./page.mjs"
import { say, withProgress } from "./progress.mjs"
import { fetchTree, findTree, trees } from "./trees.mjs"

/** Bundling takes two seconds, longer on a busy machine. */
const bundle_ms_max = 120_000

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
    "pip",
    "prometheus",
    "shells",
  ],
  demo: ["radosgw"],
  // Servers that manual benchmarks compare with.
  peers: ["radosgw", "pandas", "fastapi", "swift", "nginx", "redis", "postgresql"],
}

const missingTrees = (task) => (treesOf[task] ?? []).filter((name) => findTree(name) === undefined)

/** Tasks that need the packages for development. */
const full_tasks = ["check", "test", "services", "peers"]
const isFull = (task) => full_tasks.includes(task)

/** Commands that call a running server, and checks, start no program. */
const programsOf = (task) => (["client", "check"].includes(task) ? [] : missingPrograms())

const fetchPrograms = async (names) => {
  if (names.length === 0 || !hasDebian()) return
  say(`fetching ${names.join(" and ")} from Debian's signed archive (about 60 MB on disk)`)
  const reason = await fetchFromDebian(names)
  if (reason) say(`Debian's archive failed: ${reason}`)
}

const fetchTrees = async (names) => {
  if (!hasDebian()) return
  for (const name of names) {
    const size = `about ${trees[name].megabytes} MB`
    say(`fetching ${name} and its dependencies from Debian's signed archive (${size})`)
    const reason = await fetchTree(name)
    if (reason) say(`Debian's archive failed: ${reason}`)
  }
}

/** How to install a tree, and what it is for. */
const missingTree = (task) => (name) => {
  const users = { peers: "benchmarks", demo: "the demo" }[task] ?? "tests"
  return `${name}, required by ${users}: install it with \`${trees[name].install_command}\`.`
}

const firstLine = (stderr) => /^\w*Error.*$/m.exec(stderr)?.[0] ?? stderr.trim().split("\n", 1)[0]

/** Runs the bundler; returns the reason if it fails. */
const buildBundle = () =>
  new Promise((resolve) => {
    const child = spawn(projectNode(), [join(root, "launcher", "bundle.mjs")], {
      cwd: root,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: bundle_ms_max,
    })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text
    })
    child.on("error", ({ message }) => resolve(message))
    child.on("close", (status, signal) => {
      if (status === 0) resolve(undefined)
      else resolve(signal ? `it was stopped by ${signal}` : firstLine(stderr))
    })
  })

/** A start from the bundle is three times as fast; without one, Node runs the sources. */
const bundleForStart = async () => {
  if (!canBundle() || hasBundle() || !isWritable(root)) return
  const reason = await withProgress("bundle of the program", buildBundle)
  if (reason) say(`continuing without a bundle, so startup is slower: ${reason}`)
}

/** The services also work without their pages. */
const pageForServer = async () => {
  if (hasPage()) return
  const build = () => {
    // Another start may have built them in the meantime.
    if (hasPage()) return undefined
    say("building the pages")
    return buildPage()
  }
  const reason = isWritable(root)
    ? await withLock(join(root, ".cache", "bootstrap.lock"), build, say)
    : `${root} is not writable`
  if (!reason) return
  const missing = `the pages could not be built: ${reason}`
  if (requiresAll()) throw new Error(missing)
  say(`continuing without pages in the browser: ${missing}`)
}

const installFor = async (task) => {
  const is_full = isFull(task)
  const missing_now = programsOf(task).length + missingTrees(task).length
  if (hasPackages(is_full) && missing_now === 0) return
  const fetchAll = async () => {
    await fetchPrograms(programsOf(task))
    await fetchTrees(missingTrees(task))
  }
  // npm and apt use one core each. Both finish before an error ends the process.
  const installAll = async () => {
    const packages = hasPackages(is_full) ? undefined : installPackages(is_full, say)
    const results = await Promise.allSettled([packages, fetchAll()])
    const failed = results.find(({ status }) => status === "rejected")
    if (failed) throw failed.reason
  }
  await withLock(join(root, ".cache", "bootstrap.lock"), installAll, say)
  const missing = programsOf(task)
  for (const name of missing.filter((name) => !isRequired(name, task))) {
    say(`continuing without restic, so backups wait: ${missingBinary(name)}`)
  }
  const absent = missingTrees(task).map(missingTree(task))
  if (!requiresAll()) for (const line of absent) say(`continuing without ${line}`)
  const required = missing
    .filter((name) => isRequired(name, task))
    .map((name) => missingBinary(name))
  if (requiresAll()) required.push(...absent.map((line) => `Missing ${line}`))
  if (required.length > 0) throw new Error(required.join(" "))
}

/** Installs what the task needs. Throws an error with a message for users. */
export const install = async (task) => {
  await installFor(task)
  const has_pages = ["start", "test", "services", "peers"].includes(task)
  // Tests start the program as users do, hundreds of times.
  const has_bundle = ["start", "command", "client", "test", "services"].includes(task)
  await Promise.all([
    has_bundle ? bundleForStart() : undefined,
    has_pages ? pageForServer() : undefined,
  ])
}
