/** `almanac predict`: predictions for images. Source: document 3, plant disease §4. */
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { failure, isFailure } from "#cli/client/failure.ts"
import { isObject, type Json } from "#cli/client/json.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import { isMissing } from "#cli/client/private-file.ts"
import { readAll } from "#cli/client/read-all.ts"
import type { Session } from "#cli/client/session.ts"

/** Maximum size of an image, in bytes: the largest limit that a server can configure. */
const image_bytes_max = 200 * 2 ** 20

/** Its command is in cli/plant/predict.ts. */
export const predict: CommandGroup = {
  name: "predict",
  operations: [],
  covered: [
    { method: "POST", path: "/predict", query: ["top_k"] },
    { method: "GET", path: "/predict/model" },
  ],
}

const bytesOf = async (file: string) => {
  const unreadable = (reason: string) => failure("usage", `${file} cannot be read: ${reason}`)
  try {
    // A pipe has no size, so the read is bounded too.
    const { size } = await stat(file)
    if (size > image_bytes_max) throw new Error(`longer than ${image_bytes_max} bytes`)
    return await readAll(createReadStream(file), image_bytes_max, unreadable)
  } catch (cause) {
    if (isFailure(cause)) throw cause
    if (isMissing(cause)) throw failure("usage", `${file} does not exist`)
    throw unreadable(cause instanceof Error ? cause.message : String(cause))
  }
}

/** The prediction for one image, which is read into memory. Errors do not name the file. */
export const predictOne = async (
  { http, signal }: Session,
  file: string,
  top_k: number | undefined,
): Promise<Json> => {
  const bytes = await bytesOf(file)
  const form = new FormData()
  form.append("file", new Blob([bytes]), basename(file))
  // Response encodes the multipart form; it sends nothing.
  const encoded = new Response(form)
  const path = top_k === undefined ? "/predict" : `/predict?top_k=${top_k}`
  const request = {
    method: "POST",
    path,
    need: "none",
    signal,
    body: new Uint8Array(await encoded.arrayBuffer()),
    headers: { "content-type": encoded.headers.get("content-type") ?? "" },
  } as const
  const { body } = await http.json(request)
  return { file, ...(isObject(body) ? body : {}) }
}

/** The server's model. */
export const model = async ({ http, signal }: Session): Promise<Json> =>
  (await http.json({ method: "GET", path: "/predict/model", need: "none", signal })).body
