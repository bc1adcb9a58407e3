/** Runs a network on a gray image, and takes the time. It blocks its thread. */
import { InferenceSession, Tensor } from "onnxruntime-node"
import { side } from "#schemas/image-side.ts"
import type { Prepared } from "./prepared.ts"

export interface DryRun {
  /** Of one image, in milliseconds; the first has no warm caches. */
  readonly first_ms: number
  readonly median_ms: number
  readonly is_finite: boolean
}

/** Rejects with what ONNX Runtime says of the file. `runs` come after the first. */
export const dryRun = async (
  onnx_path: string,
  { input, output }: Prepared,
  runs: number,
): Promise<DryRun> => {
  const session = await InferenceSession.create(onnx_path, { logSeverityLevel: 4 })
  try {
    const shape = input.layout === "NHWC" ? [1, side, side, 3] : [1, 3, side, side]
    const gray = new Float32Array(side * side * 3).fill(0.5)
    const timed = async () => {
      const began = performance.now()
      const feeds = { [input.name]: new Tensor("float32", gray, shape) }
      const { [output.name]: answer } = await session.run(feeds, [output.name])
      const ms = performance.now() - began
      const values = answer?.data
      return { ms, is_finite: values instanceof Float32Array && values.every(Number.isFinite) }
    }
    const first = await timed()
    const later: Array<number> = []
    for (let run = 0; run < runs; run++) later.push((await timed()).ms)
    later.sort((one, other) => one - other)
    return {
      first_ms: first.ms,
      median_ms: later[Math.floor(later.length / 2)] ?? first.ms,
      is_finite: first.is_finite,
    }
  } finally {
    await session.release()
  }
}
