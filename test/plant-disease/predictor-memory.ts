/** Memory growth of a process over many predictions. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"

/** A tensor has 600 kB: a leak of one in ten over 1,000 images would exceed this. */
export const growth_bytes_max = 48 * 2 ** 20

const child = join(import.meta.dirname, "hold-predictor.ts")

/** Growth in bytes from the second third of these images to the last third. */
export const growthOver = (images: number) => {
  const { stdout, stderr } = spawnSync(process.execPath, [child, String(images)], {
    encoding: "utf8",
  })
  if (stdout === "") throw new Error(stderr)
  const memory: ReadonlyArray<number> = JSON.parse(stdout)
  const third = Math.floor(memory.length / 3)
  return Math.max(...memory.slice(-third)) - Math.max(...memory.slice(-2 * third, -third))
}
