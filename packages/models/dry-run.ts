/** Measures inference on a gray image. Blocks its thread. */
import { InferenceSession, Tensor } from "#onnx-runtime"
import { side } from "#schemas/image-side.ts"
import type { PreparedModel } from "./prepared-model.ts"

export interface DryRun {
  /** For one image, in milliseconds, with cold caches. */
  readonly first_ms: number
  readonly median_ms: number
  readonly is_finite: boolean
}

/** Runs once, then `runs` times more. Rejects with ONNX Runtime's error. */
export const dryRun = async (
  onnx_path: string,
  { input, output }: PreparedModel,
  runs: number,
): Promise<DryRun> => {
  const session = await InferenceSession.create(onnx_path, { logSeverityLevel: 4 })
  try {
    const shape = input.layout === "NHWC" ? [1, side, side, 3] : [1, 3, side, side]
    const gray = new Float32Array(side * side * 3).fill(0.5)
    const timedRun = async () => {
      const began = performance.now()
      const feeds = { [input.name]: new Tensor("float32", gray, shape) }
      const { [output.name]: result } = await session.run(feeds, [output.name])
      const ms = performance.now() - began
      const values = result?.data
      return { ms, is_finite: values instanceof Float32Array && values.every(Number.isFinite) }
    }
    const first = await timedRun()
    const later_ms: Array<number> = []
    for (let run = 0; run < runs; run++) later_ms.push((await timedRun()).ms)
    later_ms.sort((one, other) => one - other)
    return {
      first_ms: first.ms,
      median_ms: later_ms[Math.floor(later_ms.length / 2)] ?? first.ms,
      is_finite: first.is_finite,
    }
  } finally {
    await session.release()
  }
}
