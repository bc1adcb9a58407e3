/** An explanation of one image: what each hidden square takes from a class, painted. */
import { Effect } from "effect"
import { InferenceFailed } from "#actors/plant-disease/predictor.ts"
import { asked } from "#adapters/plant-disease/pool-effects.ts"
import type { Begun, Pool, Rows } from "#predictor"
import { squares } from "#predictor"

const failed = (detail: string) => Effect.fail(new InferenceFailed({ detail }))

/** A PNG of 224 by 224; hidden squares wait until no image does. The image is handed over. */
export const explanation = Effect.fnUntraced(function* (
  pool: Pool,
  batch_max: number,
  image: Uint8Array,
  class_index?: number,
) {
  const { rgb } = yield* asked<Begun>((told) => pool.prepare(image, told))
  const base = yield* asked<Float32Array>((told) => pool.infer(rgb.slice(), told))
  const index = class_index ?? base.indexOf(Math.max(...base))
  const whole = base[index]
  if (whole === undefined) return yield* failed(`There is no class ${index}.`)
  const starts = Array.from({ length: Math.ceil(squares / batch_max) }, (_, n) => n * batch_max)
  const rows = yield* Effect.forEach(
    starts,
    (from) =>
      asked<Rows>((told) => pool.hide(rgb, from, Math.min(from + batch_max, squares), told)),
    { concurrency: "unbounded" },
  )
  const drops = rows
    .flat()
    .map((row) => (typeof row === "string" ? row : whole - (row[index] ?? 0)))
  const wrong = drops.find((drop) => typeof drop === "string")
  if (wrong !== undefined) return yield* failed(String(wrong))
  const map = Float32Array.from(drops, Number)
  return yield* asked<Uint8Array>((told) => pool.paint(rgb, map, told))
})
