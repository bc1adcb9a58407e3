/**
 * The error of the model readers. A plain Error, so that the conversion process need not load
 * Effect; `open-model.ts` maps it to ModelUnusable.
 */

/** Advice for a network that cannot be converted. */
export const export_advice = "export ONNX and set plant.model to it"

const name = "ModelError"
/** Room for a dozen layer names and the sentence around them. */
const detail_chars_max = 2500

export interface ModelError extends Error {
  readonly detail: string
}

export const isModelError = (error: unknown): error is ModelError =>
  error instanceof Error && error.name === name

/** Replaces control characters, because names come from an untrusted file. */
export const modelError = (message: string): ModelError => {
  const detail = message.replaceAll(/\p{Cc}/gu, "?").slice(0, detail_chars_max)
  return Object.assign(new Error(detail), { name, detail })
}

/** Throws a ModelError. */
export const reject = (message: string): never => {
  throw modelError(message)
}
