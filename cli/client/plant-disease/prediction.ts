/** `almanac predict`: what a leaf has. Source: document 3, plant disease §4. */
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { failure, isFailure } from "#cli/client/failure.ts"
import { isObject, type Json } from "#cli/client/json.ts"
import type { Noun } from "#cli/client/operation.ts"
import type { Session } from "#cli/client/session.ts"
import { whole } from "#cli/client/whole.ts"

/** Longest image, in bytes: what a server may be set to take at most. */
const image_bytes_max = 200 * 2 ** 20

/** Its verb is in cli/plant/predict.ts. */
export const predict: Noun = {
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
    // A pipe has no size, so the read below is bounded too.
    const { size } = await stat(file)
    if (size > image_bytes_max) throw new Error(`longer than ${image_bytes_max} bytes`)
    return await whole(createReadStream(file), image_bytes_max, unreadable)
  } catch (cause) {
    if (isFailure(cause)) throw cause
    throw unreadable(cause instanceof Error ? cause.message : String(cause))
  }
}

/** The prediction for one image; the file is read whole. */
export const predictOne = async (
  { http, signal }: Session,
  file: string,
  top_k: number | undefined,
): Promise<Json> => {
  const bytes = await bytesOf(file)
  const form = new FormData()
  form.append("file", new Blob([bytes]), basename(file))
  // It words the form's boundaries; nothing is sent by it.
  const encoded = new Response(form)
  const path = top_k === undefined ? "/predict" : `/predict?top_k=${top_k}`
  const asked = {
    method: "POST",
    path,
    need: "none",
    signal,
    body: new Uint8Array(await encoded.arrayBuffer()),
    headers: { "content-type": encoded.headers.get("content-type") ?? "" },
  } as const
  const { body } = await http.json(asked).catch((cause: unknown) => {
    throw isFailure(cause) && cause.ending === "refused"
      ? failure(cause.ending, `${file}: ${cause.message}`)
      : cause
  })
  return { file, ...(isObject(body) ? body : {}) }
}

/** What the server predicts with. */
export const model = async ({ http, signal }: Session): Promise<Json> =>
  (await http.json({ method: "GET", path: "/predict/model", need: "none", signal })).body
