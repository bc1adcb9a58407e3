/**
 * The process that looks into a model, and writes the ONNX file of one that is none.
 *
 * Nobody imports it. A process of its own: HDF5 and ONNX Runtime block their thread, print their
 * own errors, and may die of a damaged file. Its output goes nowhere; it answers with one message.
 */

import { causeText } from "#schemas/cause-text.ts"
import { readKerasZip } from "./keras/archive.ts"
import { convertKeras } from "./keras/graph.ts"
import { readKerasH5 } from "./keras/h5.ts"
import type { Network } from "./network.ts"
import { writeOnnx } from "./onnx/writer.ts"
import type { Answered, Asked, Prepared } from "./prepared.ts"
import { isRefusal } from "./refusal.ts"
import { readTfjs } from "./tfjs.ts"

const read = ({ path, format, folder }: Asked): Promise<Network> | Network => {
  if (format === "keras-h5") return readKerasH5(path)
  return format === "keras" ? readKerasZip(path, folder) : readTfjs(path)
}

const prepare = async (asked: Asked): Promise<Prepared> => {
  if (asked.format === "onnx") {
    const { prepareOnnx } = await import("./onnx/file.ts")
    return prepareOnnx(asked.path)
  }
  const network = await read(asked)
  const { graph, classes, activation, ...converted } = convertKeras(network)
  writeOnnx(asked.onnx_path, graph)
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

const detailOf = (error: unknown, { format }: Asked) => {
  if (isRefusal(error)) return error.detail
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  if (code === "ENOSPC") return "There is no room on the disk for the converted model."
  const [line = ""] = causeText(error).split("\n")
  const reason = line.replaceAll(/\p{Cc}/gu, " ").slice(0, reason_chars_max)
  return `The model file is damaged, or no ${format} file: ${reason}`
}

const answer = async (asked: Asked): Promise<Answered> => {
  try {
    return { prepared: await prepare(asked) }
  } catch (error) {
    return { detail: detailOf(error, asked) }
  }
}

if (process.send !== undefined) {
  process.once("disconnect", () => process.exit(1))
  process.once("message", (asked) => {
    // `preparation.ts` starts this process, and says what to do first.
    void answer(asked as Asked).then((answered) => {
      process.send?.(answered, () => process.exit(0))
    })
  })
}
