/** Detects the format of a model file and hashes it. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { open, stat } from "node:fs/promises"
import { basename, extname } from "node:path"
import { reject } from "./model-error.ts"
import { externalDataFiles } from "./onnx/external-data.ts"
import { tfjsFiles } from "./tfjs.ts"

/** As `GET /predict/model` reports it: schemas/plant-disease/model.ts has the same list. */
export type ModelFormat = "keras-h5" | "keras" | "onnx" | "tfjs"

export interface ModelFile {
  readonly path: string
  readonly format: ModelFormat
  /** The file name without folder and extension. */
  readonly name: string
  /** In hex, of the file followed by its separate weight files, if any. */
  readonly sha256: string
  readonly bytes: number
}

const read_bytes = 2 ** 20

const supported_formats = "a Keras .h5 or .keras, an .onnx, or a tfjs model.json"

const readHeader = async (path: string) => {
  const file = await open(path, "r")
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(16), 0, 16, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Detects the format by the first bytes. ONNX has no signature, so its extension decides. */
const formatOf = async (path: string): Promise<ModelFormat> => {
  const header = await readHeader(path)
  if (header.length === 0) return reject("The model file is empty.")
  const signature = header.toString("latin1")
  const extension = extname(path).toLowerCase()
  if ([".pt", ".pth"].includes(extension)) {
    return reject(
      `It is a PyTorch model, not ${supported_formats}: export it with torch.onnx.export.`,
    )
  }
  if (signature.startsWith("\x89HDF\r\n\x1a\n")) return "keras-h5"
  if (signature.startsWith("PK\x03\x04")) return "keras"
  if (/^\s*\{/.test(signature)) return "tfjs"
  if (signature.slice(4, 8) === "TFL3")
    return reject(`It is a .tflite model, not ${supported_formats}.`)
  if (extension === ".onnx") return "onnx"
  return reject(
    [".h5", ".hdf5", ".keras"].includes(extension)
      ? `The model file is damaged: it does not start like a ${extension} file.`
      : `The model file is not ${supported_formats}.`,
  )
}

const reasonOf = (error: unknown) => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  return code === "ENOENT"
    ? "the file does not exist"
    : `it cannot be read (${String(code ?? error)})`
}

/** The model file and its separate weight files. */
const filesOf = async (path: string, format: ModelFormat): Promise<ReadonlyArray<string>> => {
  if (format === "tfjs") return tfjsFiles(path)
  if (format !== "onnx") return [path]
  const others = await externalDataFiles(path)
  for (const each of others) {
    await stat(each).catch((error: unknown) =>
      reject(`The model's weights in ${each} cannot be used: ${reasonOf(error)}.`),
    )
  }
  return [path, ...others]
}

/** Reads the file once in chunks, an `.onnx` twice to find its weights. Throws a ModelError. */
export const modelFile = async (path: string): Promise<ModelFile> => {
  const found = await stat(path).catch((error: unknown) =>
    reject(`The model ${path} cannot be used: ${reasonOf(error)}.`),
  )
  if (found.isDirectory()) {
    return reject(`The model is a folder (a SavedModel?), not ${supported_formats}.`)
  }
  if (!found.isFile()) return reject("The model is not a file.")
  const format = await formatOf(path)
  const paths = await filesOf(path, format)
  const hash = createHash("sha256")
  let bytes = 0
  for (const each of paths) {
    for await (const piece of createReadStream(each, { highWaterMark: read_bytes })) {
      // A stream without an encoding yields buffers.
      hash.update(piece as Buffer)
      bytes += (piece as Buffer).length
    }
  }
  const name = basename(path, extname(path))
  return { path, format, name, sha256: hash.digest("hex"), bytes }
}
