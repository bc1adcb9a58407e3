/** A description of the machine under measurement, in one paragraph. */
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os"
import { fileSystem } from "./disk.ts"
import type { Measured } from "./series.ts"
import { spread } from "./series.ts"

const gibibyte = 2 ** 30

/** Load from other work: taken at startup, before the bench adds its own. */
const load_before = loadavg()
  .map((load) => load.toFixed(1))
  .join(" ")

const ms = (value: number) => value.toFixed(2)

/** The disk and its sync latency before the rounds. */
const disk = async (folder: string, noise: Measured["noise"]) => {
  const name = await fileSystem(folder)
  if (noise.length === 0) return name
  const sync = spread(noise.map(({ p50_ms }) => p50_ms))
  const worst = Math.max(...noise.map(({ p99_ms }) => p99_ms))
  const range = `${ms(sync.min)}..${ms(sync.max)} before the rounds; worst p99 ${ms(worst)}`
  return `${name}, fdatasync p50 ${ms(sync.median)} ms (${range})`
}

/** Cores, load, disk with its sync latency during the run, Node and the servers' versions. */
export const machine = async (
  folder: string,
  measured: ReadonlyArray<Measured>,
  versions: ReadonlyArray<string>,
): Promise<string> => {
  const parts = [
    new Date().toISOString().slice(0, 10),
    `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"})`,
    `${Math.round(totalmem() / gibibyte)} GiB`,
    `Linux ${release()}`,
    `load before ${load_before}`,
    await disk(
      folder,
      measured.flatMap(({ noise }) => noise),
    ),
    `Node ${process.version}`,
    ...versions,
  ]
  return `${parts.join("; ")}.`
}
