/** HTTP client of plant disease prediction: predictions, heat maps and the model. */
import { sentence } from "../format.ts"
import type { Explanation, ModelInfo, Prediction } from "./api.ts"

export interface Problem {
  readonly title: string
  /** The server's message, if any, and advice. */
  readonly text: string
  /** The file itself is at fault, so a retry would fail again. */
  readonly is_file_error?: boolean
}

export type Result<A> =
  | { readonly kind: "ok"; readonly body: A }
  | { readonly kind: "problem"; readonly problem: Problem }

/**
 * Allows for a large photo on a slow connection and for a heat map, which takes many runs of the
 * network.
 */
const deadline_ms = 120_000

/** Number of classes to show. */
export const top_k = 5

const advice_by_status: Readonly<Record<number, readonly [title: string, what_to_do: string]>> = {
  400: ["The request is invalid", "Choose one JPEG or PNG file."],
  413: [
    "The image is too large",
    "Reduce its size or crop it to the leaf. 1000 pixels are enough.",
  ],
  415: [
    "Unsupported file type",
    "Save the image in one of these formats, with the matching file extension.",
  ],
  422: ["The image cannot be read", "The file is damaged or incomplete. Save or copy it again."],
  500: ["Prediction failed", "Check the server's log."],
  503: ["Prediction unavailable", "Wait a moment, then try again."],
}
/** Statuses whose cause is the file itself. */
const file_errors = new Set([413, 415, 422])
const unknown = ["The request failed", "Check the server's log."] as const

const offline: Problem = {
  title: "The server cannot be reached",
  text: "Check that it is running (npm start) and that your network reaches it.",
}
const unreadable: Problem = {
  title: "Unexpected response",
  text: "A proxy between this page and the server may have sent it.",
}

const problemOf = async (response: Response): Promise<Problem> => {
  const [title, what_to_do] = advice_by_status[response.status] ?? unknown
  const body: unknown = await response.json().catch(() => undefined)
  const message = typeof body === "object" && body !== null ? Reflect.get(body, "error") : ""
  const server_text = typeof message === "string" ? sentence(message) : ""
  const text = `${server_text} ${what_to_do}`.trim()
  const { status } = response
  return { title: `${title} (${status})`, text, is_file_error: file_errors.has(status) }
}

/** `isValid` checks the fields that the page depends on. */
const request = async <A>(
  path: string,
  init: RequestInit,
  isValid: (body: object) => boolean,
): Promise<Result<A>> => {
  let response: Response
  try {
    const signal = AbortSignal.timeout(deadline_ms)
    const headers = { accept: "application/json" }
    response = await fetch(path, { ...init, headers, cache: "no-store", signal })
  } catch {
    return { kind: "problem", problem: offline }
  }
  if (!response.ok) return { kind: "problem", problem: await problemOf(response) }
  const body: unknown = await response.json().catch(() => undefined)
  const is_valid = typeof body === "object" && body !== null && isValid(body)
  // The cast trusts the server.
  return is_valid ? { kind: "ok", body: body as A } : { kind: "problem", problem: unreadable }
}

const formOf = (image: File) => {
  const form = new FormData()
  form.append("file", image)
  return form
}

const hasPrediction = (body: object) => "prediction" in body && typeof body.prediction === "string"

export const predict = (image: File): Promise<Result<Prediction>> =>
  request(`/predict?top_k=${top_k}`, { method: "POST", body: formOf(image) }, hasPrediction)

/** Requests the heat map of the predicted class. */
export const fetchHeatmap = (image: File): Promise<Result<Explanation>> =>
  request(
    "/predict?explain=heatmap",
    { method: "POST", body: formOf(image) },
    (body) => hasPrediction(body) && "heatmap" in body && typeof body.heatmap === "string",
  )

export const fetchModel = (): Promise<Result<ModelInfo>> =>
  request("/predict/model", {}, (body) => "classes" in body && Array.isArray(body.classes))
