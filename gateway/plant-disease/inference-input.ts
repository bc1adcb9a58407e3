/** Validates the input of an inference request: tensors or images. Source: issue 7; KServe. */
import { Result } from "effect"
import { Base64 } from "effect/encoding"
import { side } from "#actors/plant-disease/predictor.ts"
import type { InferenceRequest } from "#schemas/plant-disease/inference.ts"
import type { Settings } from "#schemas/settings.ts"

export const output_names = ["probabilities", "class"] as const

type Output = (typeof output_names)[number]

export type InferenceInput = { readonly outputs: ReadonlyArray<Output> } & (
  | {
      readonly kind: "tensors"
      readonly count: number
      readonly tensors: Float32Array<ArrayBuffer>
    }
  | { readonly kind: "images"; readonly images: ReadonlyArray<Uint8Array> }
)

const sides = [side, side, 3]
const tensor_length = side * side * 3
/** Maximum nesting: images, rows, columns and colors. */
const nesting_max = 4

const isOutput = (name: string): name is Output => name === "probabilities" || name === "class"

const binary = ["binary_data", "binary_data_size", "binary_data_output"]

const requestsBinary = ({ parameters, inputs, outputs = [] }: InferenceRequest) =>
  [parameters, ...[...inputs, ...outputs].map((one) => one.parameters)].some(
    (options) => options !== undefined && binary.some((name) => Boolean(options[name])),
  )

/** Flattens nested numbers into an array; returns whether they fill it exactly. */
const fill = (data: ReadonlyArray<unknown>, into: Float32Array): boolean => {
  let at = 0
  const put = (values: ReadonlyArray<unknown>, depth: number): boolean =>
    values.every((value) => {
      if (Array.isArray(value)) return depth < nesting_max && put(value, depth + 1)
      if (typeof value !== "number" || at >= into.length) return false
      into[at++] = value
      return true
    })
  return put(data, 1) && at === into.length && into.every(Number.isFinite)
}

type Input = InferenceRequest["inputs"][number]

const wrongCount = (images_max: number) =>
  `The first dimension of the shape must be 1 to ${images_max}.`

const tensorsOf = ({ shape, data }: Input, images_max: number) => {
  const [count = 0, ...others] = shape
  if (others.join() !== sides.join()) return `The shape of FP32 must be [n, ${sides.join(", ")}].`
  if (count < 1 || count > images_max) return wrongCount(images_max)
  const tensors = new Float32Array(count * tensor_length)
  if (!fill(data, tensors)) {
    return `The data must have ${tensors.length} numbers, to match the shape.`
  }
  return { kind: "tensors" as const, count, tensors }
}

const imagesOf = ({ shape, data }: Input, images_max: number) => {
  const [count = 0, one = 1] = shape
  if (shape.length > 2 || one !== 1) return "The shape of BYTES must be [n]."
  if (count < 1 || count > images_max) return wrongCount(images_max)
  const texts = data.flat(1)
  const images = texts.flatMap((text) => {
    const decoded = typeof text === "string" ? Base64.decode(text) : undefined
    return decoded !== undefined && Result.isSuccess(decoded) ? [decoded.success] : []
  })
  if (texts.length !== count || images.length !== count) {
    return `The data must have ${count} base64 strings, to match the shape.`
  }
  return { kind: "images" as const, images }
}

/** Returns the input of a request, or the text of the 400. */
export const inputOf = (
  request: InferenceRequest,
  { batch_images_max }: Pick<Settings["plant"], "batch_images_max">,
): InferenceInput | string => {
  const { inputs, outputs } = request
  if (requestsBinary(request)) return "Binary tensor data is not supported."
  const names = outputs?.map(({ name }) => name) ?? output_names
  const known = names.filter(isOutput)
  if (known.length !== names.length) return `Unknown output. Use ${output_names.join(" or ")}.`
  const [input] = inputs
  if (input === undefined || inputs.length > 1 || input.name !== "image") {
    return "There must be exactly one input, 'image'."
  }
  if (input.datatype !== "FP32" && input.datatype !== "BYTES") {
    return `The datatype must be FP32 or BYTES, not ${input.datatype}.`
  }
  const of = input.datatype === "FP32" ? tensorsOf : imagesOf
  const result = of(input, batch_images_max)
  return typeof result === "string" ? result : { ...result, outputs: known }
}
