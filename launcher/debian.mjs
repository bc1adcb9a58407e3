/**
 * Programs out of Debian's signed archive, on a machine that has apt: without root, and without
 * touching the system. The mirror is the machine's own; apt checks the signature against the
 * machine's Debian keyring and each file against the signed index.
 */
import { spawnSync } from "node:child_process"
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

const keyrings = [
  "/usr/share/keyrings/debian-archive-keyring.gpg",
  "/usr/share/keyrings/debian-archive-keyring.pgp",
]

/** Newest first: the stable releases are too old for what the log needs. */
const suites = ["sid", "testing", "stable"]

/** An index of 10 MB and two packages of 20 MB; a mirror that needs longer is no use at a start. */
const apt_timeout_ms = 180_000

/** Runs a program of apt's or dpkg's in the private folder. */
export const run = (command, args, folder, timeout = apt_timeout_ms) =>
  spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout,
  })

/** The machine's hooks and leave to skip signatures have no say in the private folder. */
const configuration = (folder, is_whole) => `
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
Dir::State "${folder}/state";
Dir::State::Lists "${folder}/state/lists";
Dir::State::status "${folder}/state/status";
Dir::Cache "${folder}/cache";
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
${is_whole ? "" : apart(folder)}`

/** Nor have its sources and pins, where it is asked for what its own release lacks. */
const apart = (folder) => `Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "${folder}/sources";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "${folder}/none";
APT::Default-Release "";
`

const makeFolder = (is_whole) => {
  const parent = join(cacheDirectory(), "apt")
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, "run-"))
  for (const name of ["state/lists/partial", "cache/archives/partial", "log", "sources", "none"]) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  if (is_whole) copyFileSync("/var/lib/dpkg/status", join(folder, "state/status"))
  else writeFileSync(join(folder, "state/status"), "")
  writeFileSync(join(folder, "apt.conf"), configuration(folder, is_whole))
  return folder
}

/**
 * Does work with an apt of its own. `is_whole`: it knows what the machine has, its sources and its
 * pins; else only what it is given.
 */
export const inPrivate = ({ is_whole }, work) => {
  const folder = makeFolder(is_whole)
  const apt = (args, timeout) =>
    run("apt-get", ["-c", join(folder, "apt.conf"), ...args], folder, timeout)
  try {
    return work(apt, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The machine's own mirrors of the archive proper, as its apt reads its own sources. */
const machineMirrors = (folder) => {
  const args = ["update", "--print-uris", "-o", `Dir::State::Lists=${folder}/state/lists`]
  const { stdout } = run("apt-get", args, folder)
  const found = (stdout ?? "").matchAll(/^'(.+)\/dists\/[^/]+\/InRelease'/gm)
  const mirrors = [...new Set([...found].map(([, address]) => address))]
  return mirrors.filter((address) => /\/debian(\.list)?$/.test(address))
}

const source = (mirror, suite, keyring) =>
  `Types: deb\nURIs: ${mirror}\nSuites: ${suite}\nComponents: main\n` +
  `Targets: Packages\nSigned-By: ${keyring}\n`

/** Unpacks one package beside, then moves the program into place in one step. */
const unpack = (folder, name) => {
  const file = readdirSync(folder).find((entry) => entry.startsWith(`${name}_`))
  if (!file) return false
  const tree = join(folder, `tree-${name}`)
  if (run("dpkg-deb", ["-x", join(folder, file), tree], folder).status !== 0) return false
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

/** Whether this machine has what is needed to read Debian's archive. */
export const hasDebian = () =>
  process.platform === "linux" &&
  existsSync("/usr/bin/apt-get") &&
  existsSync("/usr/bin/dpkg-deb") &&
  keyrings.some((path) => existsSync(path))

/** A mirror that cannot be reached for one suite cannot be for the next. */
const unreachable = /Could not (resolve|connect)|timed out|Temporary failure|Network is unreachable/

/** Fetches these packages into the cache. Answers why some are missing, nothing when none is. */
export const fetchFromDebian = (names) => {
  const keyring = keyrings.find((path) => existsSync(path))
  let wanted = names
  let reason = "this machine's apt names no mirror of Debian"
  return inPrivate({ is_whole: false }, (apt, folder) => {
    for (const mirror of machineMirrors(folder)) {
      for (const suite of suites) {
        writeFileSync(join(folder, "sources/almanac.sources"), source(mirror, suite, keyring))
        const { status, stderr, error } = apt(["update"])
        if (status === 0) {
          wanted = wanted.filter(
            (name) => apt(["download", name]).status !== 0 || !unpack(folder, name),
          )
          if (wanted.length === 0) return undefined
        }
        const problem = error?.message ?? /^E: (.+)$/m.exec(stderr ?? "")?.[1] ?? "apt failed"
        reason = status === 0 ? `no ${wanted.join(", ")} in ${suite}` : problem
        if (error || unreachable.test(stderr ?? "")) break
      }
    }
    return reason
  })
}
