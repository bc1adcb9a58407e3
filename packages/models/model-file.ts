/** A model as it was handed in: of which form it is, and what it hashes to. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { open, stat } from "node:fs/promises"
import { basename, extname } from "node:path"
import { onnxWeightFiles } from "./onnx/weights.ts"
import { unusable } from "./refusal.ts"
import { tfjsFiles } from "./tfjs.ts"

/** As `GET /predict/model` reports it: schemas/plant-disease/model.ts has the same list. */
export type ModelFormat = "keras-h5" | "keras" | "onnx" | "tfjs"

export interface ModelFile {
  readonly path: string
  readonly format: ModelFormat
  /** Without folder and ending. */
  readonly name: string
  /** Of the file, and after it of those that hold its weights, if there are; in hex. */
  readonly sha256: string
  readonly bytes: number
}

const read_bytes = 2 ** 20

const forms = "a Keras .h5 or .keras, an .onnx, or a tfjs model.json"

const headOf = async (path: string) => {
  const file = await open(path, "r")
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(16), 0, 16, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** By its first bytes; an .onnx has none that tell, and says so by its name. */
const formatOf = async (path: string): Promise<ModelFormat> => {
  const head = await headOf(path)
  if (head.length === 0) return unusable("The model file is empty.")
  const mark = head.toString("latin1")
  const ending = extname(path).toLowerCase()
  if ([".pt", ".pth"].includes(ending)) {
    return unusable(`It is a PyTorch model, not ${forms}: export it with torch.onnx.export.`)
  }
  if (mark.startsWith("\x89HDF\r\n\x1a\n")) return "keras-h5"
  if (mark.startsWith("PK\x03\x04")) return "keras"
  if (/^\s*\{/.test(mark)) return "tfjs"
  if (mark.slice(4, 8) === "TFL3") return unusable(`It is a .tflite model, not ${forms}.`)
  if (ending === ".onnx") return "onnx"
  return unusable(
    [".h5", ".hdf5", ".keras"].includes(ending)
      ? `The model file is damaged: it does not begin as a ${ending} does.`
      : `The model file is not ${forms}.`,
  )
}

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  return code === "ENOENT"
    ? "there is no such file"
    : `it cannot be read (${String(code ?? error)})`
}

/** The model's file, and those that hold its weights. */
const filesOf = async (path: string, format: ModelFormat): Promise<ReadonlyArray<string>> => {
  if (format === "tfjs") return tfjsFiles(path)
  if (format !== "onnx") return [path]
  const others = await onnxWeightFiles(path)
  for (const each of others) {
    await stat(each).catch((error: unknown) =>
      unusable(`The model's weights in ${each} cannot be used: ${reasonOf(error)}.`),
    )
  }
  return [path, ...others]
}

/** Reads it once, in pieces; an `.onnx` once more for where its weights are. Throws a refusal. */
export const modelFile = async (path: string): Promise<ModelFile> => {
  const found = await stat(path).catch((error: unknown) =>
    unusable(`The model ${path} cannot be used: ${reasonOf(error)}.`),
  )
  if (found.isDirectory()) {
    return unusable(`The model is a folder (a SavedModel?), not ${forms}.`)
  }
  if (!found.isFile()) return unusable("The model is no file.")
  const format = await formatOf(path)
  const paths = await filesOf(path, format)
  const hash = createHash("sha256")
  let bytes = 0
  for (const each of paths) {
    for await (const piece of createReadStream(each, { highWaterMark: read_bytes })) {
      // A stream without an encoding gives buffers.
      hash.update(piece as Buffer)
      bytes += (piece as Buffer).length
    }
  }
  const name = basename(path, extname(path))
  return { path, format, name, sha256: hash.digest("hex"), bytes }
}
