/** Suite 7: a backup and a restore with Almanac, with the bare engine, and with rclone. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { findBinary } from "../../launcher/binaries.mjs"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip, say } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { startAlmanac } from "./backup-almanac.ts"
import { openPlace, type Place } from "./backup-places.ts"
import { files_total, makeShareFiles } from "./share-files.ts"

const megabyte = 1e6

type Environment = Readonly<Record<string, string>>

/** Runs a program to completion; returns the seconds it took. */
const run = async (
  program: string,
  args: ReadonlyArray<string>,
  cwd: string,
  environment: Environment,
) => {
  const began = performance.now()
  const env = { PATH: process.env.PATH ?? "", HOME: cwd, ...environment }
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "ignore", "pipe"] })
  let output = ""
  child.stderr.on("data", (part: Buffer) => {
    output = (output + part.toString()).slice(-1000)
  })
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`${program} ${args[0]} ended with ${code}: ${output}`)
  return (performance.now() - began) / 1000
}

/** A backup program; the methods return seconds. A restore uses the backup of its round. */
interface Contestant {
  readonly name: string
  readonly open: (place: Place) => Promise<void>
  readonly backUp: () => Promise<number>
  readonly restore: () => Promise<number>
}

const restic = (program: string, share: string, folder: string): Contestant => {
  let environment: Environment = {}
  const back = join(folder, "restic-back")
  const flags = ["--json"]
  return {
    name: "restic",
    open: async ({ endpoint, bucket, access_key, secret_key }) => {
      environment = {
        AWS_ACCESS_KEY_ID: access_key,
        AWS_SECRET_ACCESS_KEY: secret_key,
        RESTIC_REPOSITORY: `s3:${endpoint}/${bucket}`,
        RESTIC_PASSWORD: "bench",
      }
      await run(program, ["init", ...flags], folder, environment)
    },
    backUp: () => run(program, ["backup", ".", "--host", "share", ...flags], share, environment),
    restore: async () => {
      const args = ["restore", "latest", "--target", back, "--sparse", ...flags]
      const seconds = await run(program, args, folder, environment)
      await rm(back, { recursive: true })
      return seconds
    },
  }
}

const rclone = (share: string, folder: string): Contestant => {
  let environment: Environment = {}
  const back = join(folder, "rclone-back")
  return {
    name: "rclone, 16 transfers",
    open: async ({ endpoint, access_key, secret_key }) => {
      environment = {
        RCLONE_CONFIG_S3_TYPE: "s3",
        RCLONE_CONFIG_S3_PROVIDER: "Ceph",
        RCLONE_CONFIG_S3_ENDPOINT: endpoint,
        RCLONE_CONFIG: "/dev/null",
        RCLONE_CONFIG_S3_ACCESS_KEY_ID: access_key,
        RCLONE_CONFIG_S3_SECRET_ACCESS_KEY: secret_key,
      }
    },
    backUp: () =>
      run("rclone", ["copy", share, "s3:backups", "--transfers", "16"], folder, environment),
    restore: async () => {
      const args = ["copy", "s3:backups", back, "--transfers", "16"]
      const seconds = await run("rclone", args, folder, environment)
      await rm(back, { recursive: true })
      return seconds
    },
  }
}

type Almanac = Awaited<ReturnType<typeof startAlmanac>>

const almanac = (server: Almanac): Contestant => {
  let target_id = ""
  let backup_id = ""
  return {
    name: "almanac",
    open: async (place) => {
      target_id = await server.enroll(place)
    },
    backUp: async () => {
      const made = await server.backUp(target_id)
      backup_id = made.backup_id
      return made.seconds
    },
    restore: async () => {
      const { path, seconds } = await server.restore(backup_id)
      await rm(path, { recursive: true })
      return seconds
    },
  }
}

const roundOf = (seconds: number) => ({
  runs: 1,
  runs_per_s: 1 / seconds,
  p50_ms: seconds * 1000,
  p99_ms: seconds * 1000,
})

/**
 * Two contestants: the backup into a new place, and the restore from it, which then closes the
 * place.
 */
const seatsOf = ({ name, open, backUp, restore }: Contestant, folder: string) => {
  let place: Place | undefined
  const backup = async () => {
    await place?.close()
    place = await openPlace(folder)
    await open(place)
    return roundOf(await backUp())
  }
  const back = async () => {
    const seconds = await restore()
    await place?.close()
    place = undefined
    return roundOf(seconds)
  }
  return {
    seats: [
      { name: `backup: ${name}`, round: backup },
      { name: `restore: ${name}`, round: back },
    ],
    close: async () => place?.close(),
  }
}

export const backup: Suite = async ({ folder, rounds, onEnd }) => {
  const program = findBinary("restic")?.path
  if (program === undefined) throw new Error("restic is not here")
  const server = await startAlmanac(join(folder, "almanac"))
  onEnd(server.stop)
  say(`making ${files_total} files`)
  const bytes = await makeShareFiles(server.share)
  await mkdir(join(folder, "work"))
  const work = join(folder, "work")
  const contestants = [almanac(server), restic(program, server.share, work)]
  const has_rclone = await orSkip("rclone", () => run("rclone", ["version"], work, {}))
  if (has_rclone !== undefined) contestants.push(rclone(server.share, work))
  const all = contestants.map((contestant) => seatsOf(contestant, folder))
  for (const { close } of all) onEnd(async () => close())
  const effort = { in_flight: 1, seconds: 0, runs_max: 1 }
  const seats = all.flatMap((one) => one.seats)
  const measured = await interleave(seats, effort, rounds, folder)
  const spent =
    `${rounds} rounds, interleaved, after one discarded; ${files_total} files of ` +
    `${Math.round(bytes / megabyte)} MB from the live folder into a new repository on a new ` +
    "S3 server, then back into a new folder. Almanac is measured from the job's `started_at` to " +
    "its `finished_at`, the others from start to exit. Each engine has its own cache."
  const tables = ["backup", "restore"].map((what) => {
    const series = measured.series.filter(({ name }) => name.startsWith(what))
    const columns = { rate: "MB/s", per_run: bytes / megabyte, ours: `${what}: almanac` }
    return table({ ...measured, series }, { ...columns, latency: true })
  })
  return [await machine(folder, [measured], []), spent, ...tables].join("\n\n")
}
