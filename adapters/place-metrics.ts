/** Prometheus text about the process's environment: disk, certificate, release, backups. */
import { readFile, statfs } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { LastBackup, last_backup_file } from "#adapters/state/last-backup.ts"
import { familyText, plainText } from "#schemas/metric.ts"
import type { Settings } from "#schemas/settings.ts"

const ms_per_s = 1000

const certificate = {
  name: "almanac_tls_certificate_expiry_timestamp_seconds",
  type: "gauge",
  help: "Expiry of the TLS certificate, in Unix time; no sample without TLS.",
} as const

const build = {
  name: "almanac_build_info",
  type: "gauge",
  help: "Always 1; the labels are the release and the runtime.",
} as const

/** Time of the last state backup of this folder; 0 if never or unknown. */
const lastBackup = (data_dir: string) =>
  Effect.tryPromise(() => readFile(join(data_dir, last_backup_file), "utf8")).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(LastBackup)),
    Effect.map(({ at }) => Date.parse(at) / ms_per_s),
    Effect.orElseSucceed(() => 0),
  )

const backup_help = "Time of the last state backup of this data folder, in Unix time; 0: never."

/**
 * The metrics as text. Fails if the data folder cannot be read. `certificateEnds` returns the
 * expiry of the served certificate in Unix time; undefined without one.
 */
export const placeMetrics = (
  { data }: Settings,
  version: string,
  certificateEnds: () => number | undefined,
) =>
  Effect.gen(function* () {
    const disk = yield* Effect.tryPromise(() => statfs(data.dir))
    const ends = certificateEnds()
    const expiry = ends === undefined ? [] : [[ends] as const]
    return [
      familyText(build, [[1, { version, node: process.versions.node }]]),
      plainText("almanac_data_disk_", [
        [
          "gauge",
          "free_bytes",
          "Free bytes on the disk of the data folder.",
          disk.bavail * disk.bsize,
        ],
        [
          "gauge",
          "size_bytes",
          "Size of the disk of the data folder in bytes.",
          disk.blocks * disk.bsize,
        ],
      ]),
      familyText(certificate, expiry),
      plainText("almanac_state_backup_", [
        ["gauge", "timestamp_seconds", backup_help, yield* lastBackup(data.dir)],
      ]),
    ].join("")
  })
