/** Checks of `almanac doctor` on this machine: programs, data folder, keys and certificates. */
import { createPrivateKey, X509Certificate } from "node:crypto"
import { existsSync, type StatsFs } from "node:fs"
import { readFile, stat, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { restoring_file } from "#adapters/data-folder/lock.ts"
import { type Check, promiseCheck } from "#adapters/doctor/checks.ts"
import {
  type Finding,
  fail,
  formatDuration,
  listNames,
  ok,
  warn,
} from "#adapters/doctor/finding.ts"
import { includedFiles } from "#adapters/state/files.ts"
import { LastBackup, last_backup_file } from "#adapters/state/last-backup.ts"
import { findBounded } from "#files"
import type { Settings } from "#schemas/settings.ts"
import { findBinary, missingBinary, type ProgramName } from "../../launcher/binaries.mjs"

/** The major version of Node that this program is tested with. */
const node_major = 24

/** Free space on the data folder's disk below which a check fails or warns. */
const free_bytes_fail = 1024 ** 3
const free_share_warn = 0.1

/** File systems by their type in statfs(2) that are not safe for a log, and why. */
const file_systems: Readonly<Record<number, string>> = {
  26985: "NFS, where locks and syncs may not work as on a local disk",
  4283649346: "SMB, where locks and syncs may not work as on a local disk",
  4266872130: "SMB, where locks and syncs may not work as on a local disk",
  16914836: "tmpfs, which loses its contents on a reboot",
}

/** Days before the expiry; most certificates are renewed a month before. */
const certificate_days_warn = 30
const day_ms = 86_400_000

/** Age in days at which a state backup counts as outdated. */
const backup_days_max = 7

/** Private files, except those that a state backup includes. */
const other_private = ["run/instance.json"]
const private_paths =
  /^(audit-key\.pem|webhook-key|cursor-key|dev-credentials\.json|(vault|identity)\/)/

const program = (name: ProgramName, configured: string): Finding => {
  const options = { configured: configured || undefined }
  const found = findBinary(name, options)
  if (found === undefined) return fail("program", missingBinary(name, options))
  return ok("program", `${name} ${found.version}: ${found.path}`)
}

const programs = ({ nats, engine, services }: Settings): ReadonlyArray<Finding> => {
  const major = Number(process.versions.node.split(".")[0])
  const node =
    major === node_major
      ? ok("program", `Node ${process.version}`)
      : warn("program", `Node ${process.version}: Almanac is tested with ${node_major}.`)
  return [
    node,
    ...(nats.url === "" ? [program("nats-server", nats.binary)] : []),
    ...(services.includes("share-protection") ? [program("restic", engine.binary)] : []),
  ]
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`

/** Free space of the folder's file system, and whether its type is safe for a log. */
export const spaceFindings = (
  dir: string,
  { bavail, blocks, bsize, type }: Pick<StatsFs, "bavail" | "blocks" | "bsize" | "type">,
): ReadonlyArray<Finding> => {
  const free = bavail * bsize
  const summary = `${gigabytes(free)} free of ${gigabytes(blocks * bsize)} in ${dir}`
  const found = file_systems[type]
  const kind = found === undefined ? [] : [warn("disk", `${dir} is on ${found}.`)]
  if (free < free_bytes_fail) return [fail("disk", `${summary}: free space.`), ...kind]
  const is_low = bavail < blocks * free_share_warn
  return [is_low ? warn("disk", `${summary}: it is filling up.`) : ok("disk", summary), ...kind]
}

const isAccessible = async (path: string) => {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && (found.mode & 0o077) !== 0
}

const secrets = async (dir: string): Promise<Finding> => {
  const files = (await includedFiles(dir)).map(({ path }) => path)
  const all = [...files.filter((path) => private_paths.test(path)), ...other_private]
  const accessible: Array<string> = []
  for (const path of all) if (await isAccessible(join(dir, path))) accessible.push(path)
  if (accessible.length === 0)
    return ok("secrets", `${all.length} secret files in ${dir} are readable by their owner only`)
  return fail(
    "secrets",
    `other users can read ${listNames(accessible)} in ${dir}: run chmod 600 on them and replace ` +
      "the secrets.",
  )
}

/** Reports the last state backup, which `backup-state` records. */
const lastBackup = async (dir: string, now_ms: number): Promise<Finding> => {
  const text = await Effect.runPromise(
    findBounded(join(dir, last_backup_file), 4096).pipe(Effect.orElseSucceed(Option.none)),
  )
  const found = Option.flatMap(text, (one) => Schema.decodeUnknownOption(LastBackup)(one))
  if (Option.isNone(found)) {
    return warn("backup", "State has never been backed up: run almanac backup-state --to FOLDER.")
  }
  const { at, position, to } = found.value
  const age = now_ms - Date.parse(at)
  const summary = `position ${position} was backed up ${formatDuration(age)} ago to ${to}`
  if (!(age <= backup_days_max * day_ms))
    return warn("backup", `${summary}: run backup-state again.`)
  const [source, target] = await Promise.all([stat(dir), stat(to).catch(() => undefined)])
  if (target?.dev === source.dev) {
    return warn("backup", `${summary}, on the same disk as the data: copy it elsewhere.`)
  }
  return ok("backup", target === undefined ? `${summary}, which no longer exists` : summary)
}

const folder = async ({ data: { dir } }: Settings): Promise<ReadonlyArray<Finding>> => {
  if (!existsSync(dir)) return [warn("folder", `${dir} does not exist yet: npm start creates it.`)]
  const unfinished = existsSync(join(dir, restoring_file))
    ? [fail("folder", `A restore into ${dir} was not finished: repeat almanac restore-state.`)]
    : []
  const is_accessible = await isAccessible(dir)
  return [
    is_accessible
      ? fail("folder", `other users can list ${dir}: run chmod 700 on it.`)
      : ok("folder", dir),
    ...unfinished,
  ]
}

const loopback = /^(127\.|::1$|localhost$)/

const certificate = async (
  { tls, api }: Settings,
  now_ms: number,
): Promise<ReadonlyArray<Finding>> => {
  if (tls.cert === "") {
    return loopback.test(api.bind_host)
      ? []
      : [
          warn(
            "tls",
            `the server listens on ${api.bind_host} without TLS: set tls.cert and tls.key, use ` +
              "a proxy " +
              "for TLS, or listen on 127.0.0.1.",
          ),
        ]
  }
  const read = async (path: string) => await readFile(path)
  try {
    const found = new X509Certificate(await read(tls.cert))
    const remaining_ms = Date.parse(found.validTo) - now_ms
    const summary = `${tls.cert} is valid until ${new Date(found.validTo).toISOString()}`
    // An older release's instance file names only the certificate, so `tls.key` may be unknown.
    if (tls.key !== "" && !found.checkPrivateKey(createPrivateKey(await read(tls.key)))) {
      return [fail("tls", `${tls.key} is not the private key of ${tls.cert}.`)]
    }
    if (Date.parse(found.validFrom) > now_ms) {
      return [fail("tls", `${tls.cert} is not valid before ${found.validFrom}: check the clock.`)]
    }
    if (remaining_ms <= 0)
      return [fail("tls", `${tls.cert} expired ${formatDuration(-remaining_ms)} ago: renew it.`)]
    if (remaining_ms < certificate_days_warn * day_ms) return [warn("tls", `${summary}: renew it.`)]
    return [ok("tls", summary)]
  } catch (cause) {
    // Report only the code, because a parser's message could leak parts of the key.
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable"
    return [fail("tls", `${tls.cert} or ${tls.key} cannot be used: ${code}.`)]
  }
}

/** The checks that need no connection. */
export const machineChecks = (settings: Settings, now_ms: number): ReadonlyArray<Check> => {
  const { dir } = settings.data
  // Skipped before the first start, because the folder does not exist.
  const ifFolderExists = (run: () => Promise<Finding | ReadonlyArray<Finding>>) => async () =>
    existsSync(dir) ? await run() : []
  return [
    promiseCheck("program", async () => programs(settings)),
    promiseCheck("folder", () => folder(settings)),
    promiseCheck(
      "disk",
      ifFolderExists(async () => spaceFindings(dir, await statfs(dir))),
    ),
    promiseCheck(
      "secrets",
      ifFolderExists(() => secrets(dir)),
    ),
    promiseCheck(
      "backup",
      ifFolderExists(() => lastBackup(dir, now_ms)),
    ),
    promiseCheck("tls", () => certificate(settings, now_ms)),
  ]
}
