/**
 * How the readers of models, which are plain functions, end where a model cannot be used.
 *
 * An error of Node's, since the process that converts loads no more than it needs; `opening.ts`
 * makes a ModelUnusable of it.
 */

/** What to do about a network that only the tool which made it understands. */
export const export_onnx = "export ONNX and set plant.model to it"

const name = "ModelRefused"
/** A dozen names of layers, and what stands around them. */
const detail_chars_max = 2500

export interface Refusal extends Error {
  readonly detail: string
}

export const isRefusal = (error: unknown): error is Refusal =>
  error instanceof Error && error.name === name

/** A line to be told; names out of a file lose what a terminal would obey. */
export const refusal = (told: string): Refusal => {
  const detail = told.replaceAll(/\p{Cc}/gu, "?").slice(0, detail_chars_max)
  return Object.assign(new Error(detail), { name, detail })
}

/** Throws. */
export const unusable = (told: string): never => {
  throw refusal(told)
}
