/** How a process's memory grows over many predictions. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"

/** A tensor is 600 kB: were one in ten kept, 1,000 images would take more. */
export const growth_bytes_max = 48 * 2 ** 20

const child = join(import.meta.dirname, "hold-predictor.ts")

/** Bytes that the last third of so many images needs more than the one before it. */
export const growthOver = (images: number) => {
  const { stdout, stderr } = spawnSync(process.execPath, [child, String(images)], {
    encoding: "utf8",
  })
  if (stdout === "") throw new Error(stderr)
  const memory: ReadonlyArray<number> = JSON.parse(stdout)
  const third = Math.floor(memory.length / 3)
  return Math.max(...memory.slice(-third)) - Math.max(...memory.slice(-2 * third, -third))
}
