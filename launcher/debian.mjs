/**
 * Downloads programs from Debian's signed archive on machines with apt. Needs no root and does not
 * change the system. It uses the machine's own mirrors; apt verifies the index's signature with the
 * machine's Debian keyring, and each file against that index.
 */
import { spawn } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { programFolder } from "./binaries.mjs"
import { cacheDirectory } from "./cache.mjs"
import { folderSize, withProgress } from "./progress.mjs"

const keyrings = [
  "/usr/share/keyrings/debian-archive-keyring.gpg",
  "/usr/share/keyrings/debian-archive-keyring.pgp",
]

/** Newest first: nats-server in the stable releases is too old for the log. */
const suites = ["sid", "testing", "stable"]

/**
 * For an index of 10 MB and two packages of 20 MB. A slower mirror would delay startup too long.
 */
const apt_timeout_ms = 180_000

/** Runs a program of apt or dpkg in the private folder; returns its status and output. */
export const run = (command, args, folder, timeout = apt_timeout_ms) =>
  new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: folder,
      env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout,
    })
    const output = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => {
        output[name] += text
      })
    }
    child.on("error", (error) => resolve({ error, ...output }))
    child.on("close", (status, signal) => {
      const seconds = timeout / 1000
      const error = signal ? new Error(`${command} took more than ${seconds} s`) : undefined
      resolve({ status, error, ...output })
    })
  })

/**
 * Configures the private apt: the machine's hooks, and settings that skip signatures, have no
 * effect. It keeps its parsed indexes, which images for containers disable: parsing them for each
 * package would take half of the time.
 */
const configuration = (folder, uses_system) => `
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
Dir::State "${folder}/state";
Dir::State::Lists "${folder}/state/lists";
Dir::State::status "${folder}/state/status";
Dir::Cache "${folder}/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Log "${folder}/log";
Debug::NoLocking "true";
APT::Sandbox::User "";
APT::Get::AllowUnauthenticated "false";
APT::Update::Error-Mode "any";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "15";
Acquire::https::Timeout "15";
${uses_system ? "" : ownSources(folder)}`

/** Also ignores the machine's sources and pins, for packages that its release lacks. */
const ownSources = (folder) => `Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "${folder}/sources";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "${folder}/none";
APT::Default-Release "";
`

const makeFolder = (uses_system) => {
  const parent = join(cacheDirectory(), "apt")
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, "run-"))
  for (const name of ["state/lists/partial", "cache/archives/partial", "log", "sources", "none"]) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  if (uses_system) copyFileSync("/var/lib/dpkg/status", join(folder, "state/status"))
  else writeFileSync(join(folder, "state/status"), "")
  writeFileSync(join(folder, "apt.conf"), configuration(folder, uses_system))
  return folder
}

/**
 * Runs `work` with a private apt. With `uses_system`, that apt knows the machine's packages,
 * sources and pins; otherwise only sources that `work` adds.
 */
export const withPrivateApt = async ({ uses_system, label, total }, work) => {
  const folder = makeFolder(uses_system)
  const apt = (args, timeout) =>
    run("apt-get", ["-c", join(folder, "apt.conf"), ...args], folder, timeout)
  const cache = join(folder, "cache")
  // Without the parsed indexes, which are not downloaded.
  const downloaded = () =>
    folderSize(folder) - folderSize(cache) + folderSize(join(cache, "archives"))
  try {
    return await withProgress(label, () => work(apt, folder), { bytes: downloaded, total })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The machine's mirrors of Debian's main archive, as its apt reads them from its sources. */
const machineMirrors = async (folder) => {
  const args = ["update", "--print-uris", "-o", `Dir::State::Lists=${folder}/state/lists`]
  const { stdout } = await run("apt-get", args, folder)
  const found = stdout.matchAll(/^'(.+)\/dists\/[^/]+\/InRelease'/gm)
  const mirrors = [...new Set([...found].map(([, address]) => address))]
  return mirrors.filter((address) => /\/debian(\.list)?$/.test(address))
}

const source = (mirror, suite, keyring) =>
  `Types: deb\nURIs: ${mirror}\nSuites: ${suite}\nComponents: main\n` +
  `Targets: Packages\nSigned-By: ${keyring}\n`

/** Unpacks a package, then moves its program into the cache in one step. */
const unpack = async (folder, name) => {
  const file = readdirSync(folder).find((entry) => entry.startsWith(`${name}_`))
  if (!file) return false
  const tree = join(folder, `tree-${name}`)
  const { status } = await run("dpkg-deb", ["-x", join(folder, file), tree], folder)
  if (status !== 0) return false
  const program = ["usr/bin", "usr/sbin"]
    .map((bin) => join(tree, bin, name))
    .find((path) => existsSync(path))
  if (!program) return false
  mkdirSync(programFolder(), { recursive: true })
  const scratch = join(programFolder(), `.${name}.${process.pid}`)
  copyFileSync(program, scratch)
  chmodSync(scratch, 0o755)
  renameSync(scratch, join(programFolder(), name))
  return true
}

/** Whether this machine can read Debian's archive. */
export const hasDebian = () =>
  process.platform === "linux" &&
  existsSync("/usr/bin/apt-get") &&
  existsSync("/usr/bin/dpkg-deb") &&
  keyrings.some((path) => existsSync(path))

/** A mirror that is unreachable for one suite is not tried for the others. */
const unreachable = /Could not (resolve|connect)|timed out|Temporary failure|Network is unreachable/

/** Downloads these packages into the cache. Returns the reason if some are still missing. */
export const fetchFromDebian = (names) => {
  const keyring = keyrings.find((path) => existsSync(path))
  let missing = names
  let reason = "apt on this machine lists no Debian mirror"
  const options = { uses_system: false, label: names.join(" and ") }
  return withPrivateApt(options, async (apt, folder) => {
    for (const mirror of await machineMirrors(folder)) {
      for (const suite of suites) {
        writeFileSync(join(folder, "sources/almanac.sources"), source(mirror, suite, keyring))
        const { status, stderr, error } = await apt(["update"])
        if (status === 0) {
          const absent = []
          for (const name of missing) {
            const download = await apt(["download", name])
            if (download.status !== 0 || !(await unpack(folder, name))) absent.push(name)
          }
          missing = absent
          if (missing.length === 0) return undefined
        }
        const problem = error?.message ?? /^E: (.+)$/m.exec(stderr)?.[1] ?? "apt failed"
        reason = status === 0 ? `${suite} has no ${missing.join(", ")}` : problem
        if (error || unreachable.test(stderr)) break
      }
    }
    return reason
  })
}
