/**
 * The child process that inspects a model and converts it to ONNX if it is in another format.
 *
 * A separate process, because HDF5 and ONNX Runtime block their thread, print their own errors, and
 * may crash on a damaged file. Its output is discarded; it responds with one message.
 */

import { causeText } from "#schemas/cause-text.ts"
import { readKerasZip } from "./keras/archive.ts"
import { convertKeras } from "./keras/convert.ts"
import { readKerasH5 } from "./keras/h5.ts"
import { isModelError } from "./model-error.ts"
import type { Network } from "./network.ts"
import { writeOnnx } from "./onnx/writer.ts"
import type { ConversionRequest, ConversionResponse, PreparedModel } from "./prepared-model.ts"
import { readTfjs } from "./tfjs.ts"

const read = ({ path, format, folder }: ConversionRequest): Promise<Network> | Network => {
  if (format === "keras-h5") return readKerasH5(path)
  return format === "keras" ? readKerasZip(path, folder) : readTfjs(path)
}

const prepare = async (request: ConversionRequest): Promise<PreparedModel> => {
  if (request.format === "onnx") {
    const { prepareOnnx } = await import("./onnx/prepare.ts")
    return prepareOnnx(request.path)
  }
  const network = await read(request)
  const { graph, classes, activation, ...converted } = convertKeras(network)
  writeOnnx(request.onnx_path, graph)
  network.close()
  return {
    input: {
      name: graph.input.name,
      layout: "NHWC",
      batch: "any",
      has_rescaling: converted.has_rescaling,
    },
    output: {
      name: graph.output.name,
      classes,
      activation,
      is_softmax: activation === "softmax",
    },
    parameters: converted.parameters,
    layers: converted.layers,
  }
}

const reason_chars_max = 120

const errorDetail = (error: unknown, { format }: ConversionRequest) => {
  if (isModelError(error)) return error.detail
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  if (code === "ENOSPC") return "The disk is full: the converted model could not be written."
  const [line = ""] = causeText(error).split("\n")
  const reason = line.replaceAll(/\p{Cc}/gu, " ").slice(0, reason_chars_max)
  return `The model file is damaged or is not a ${format} file: ${reason}`
}

const respond = async (request: ConversionRequest): Promise<ConversionResponse> => {
  try {
    return { prepared: await prepare(request) }
  } catch (error) {
    return { detail: errorDetail(error, request) }
  }
}

if (process.send !== undefined) {
  process.once("disconnect", () => process.exit(1))
  process.once("message", (request) => {
    // `conversion-cache.ts` starts this process and sends a request first.
    void respond(request as ConversionRequest).then((answered) => {
      process.send?.(answered, () => process.exit(0))
    })
  })
}
