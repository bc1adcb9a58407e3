/** Runs a search: requests a range and reads the response line by line. */
import type { Carrier, Progress, Summary } from "./api.ts"
import type { Range } from "./range.ts"

/** The carriers in order of arrival, which is by number. */
export interface Found {
  readonly numbers: number[]
  readonly names: string[]
}

export interface Failure {
  /**
   * offline: no response; refused: invalid range or parameters; busy: retry later; registry: 502;
   * server: other statuses; broken: the response ended early; unreadable: the response is not that
   * of a search.
   */
  readonly kind: "offline" | "refused" | "busy" | "registry" | "server" | "broken" | "unreadable"
  readonly status: number
  /** The server's error message; empty if there is none. */
  readonly message: string
}

export type Outcome =
  | { readonly kind: "done"; readonly summary: Summary }
  | { readonly kind: "cancelled" }
  | { readonly kind: "failed"; readonly failure: Failure }

type Line =
  | Carrier
  | { readonly progress: Progress }
  | { readonly summary: Summary }
  | { readonly error: string }

/** Maximum length of a line, which holds one carrier. */
const line_chars_max = 1_000_000
/** Longest time to parse before yielding to the browser. */
const slice_ms = 12

const failed = (kind: Failure["kind"], status: number, message = ""): Outcome => ({
  kind: "failed",
  failure: { kind, status, message },
})

const kindOf = (status: number): Failure["kind"] => {
  if (status === 502) return "registry"
  if (status === 429 || status === 503) return "busy"
  return status < 500 ? "refused" : "server"
}

/** The message of an error response; empty if it has another format. */
const messageIn = async (response: Response) => {
  try {
    const body: unknown = await response.json()
    const message =
      typeof body === "object" && body !== null ? Reflect.get(body, "error") : undefined
    return typeof message === "string" ? message : ""
  } catch {
    return ""
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve))

/** Yields the complete lines of a body in batches. */
async function* linesOf(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n")
      rest = lines.pop() ?? ""
      if (rest.length > line_chars_max)
        throw new SyntaxError("The line exceeds the maximum length.")
      yield lines
    }
  } finally {
    // Do not read the rest after the last line or an error.
    reader.cancel().catch(() => undefined)
  }
}

/** Parses a line. The cast trusts the server; a test compares the types with its schemas. */
const lineOf = (text: string): Line => {
  const line: unknown = JSON.parse(text)
  if (typeof line !== "object" || line === null) throw new SyntaxError("no object")
  return line as Line
}

/** Called when data arrives, with the progress if the line reports it. */
type OnProgress = (progress?: Progress) => void

/** Handles one line; returns the outcome if it is the last. */
const handleLine = (
  line: Line,
  found: Found,
  status: number,
  onProgress: OnProgress,
): Outcome | undefined => {
  if ("mcNumber" in line) {
    found.numbers.push(line.mcNumber)
    found.names.push(line.name)
  } else if ("progress" in line) {
    onProgress(line.progress)
  } else if ("summary" in line) {
    return { kind: "done", summary: line.summary }
  } else if ("error" in line) {
    return failed("registry", status, line.error)
  }
  return undefined
}

const readResponse = async (
  response: Response,
  found: Found,
  onProgress: OnProgress,
): Promise<Outcome> => {
  const { body, status } = response
  if (body === null) return failed("unreadable", status)
  let slice_start = performance.now()
  for await (const lines of linesOf(body)) {
    for (const text of lines) {
      if (text === "") continue
      const outcome = handleLine(lineOf(text), found, status, onProgress)
      if (outcome) return outcome
      if (performance.now() - slice_start > slice_ms) {
        await pause()
        slice_start = performance.now()
      }
    }
    onProgress()
  }
  return failed("broken", status)
}

/**
 * Searches the range and appends the carriers to `found` as they arrive. Aborting `signal` also
 * ends the search on the server. Never rejects.
 */
export const search = async (
  { start, end }: Range,
  found: Found,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<Outcome> => {
  let status = 0
  try {
    const response = await fetch(`/api/search?start=${start}&end=${end}`, {
      headers: { accept: "application/x-ndjson" },
      cache: "no-store",
      signal,
    })
    status = response.status
    if (!response.ok) return failed(kindOf(status), status, await messageIn(response))
    const type = response.headers.get("content-type") ?? ""
    if (!type.startsWith("application/x-ndjson")) return failed("unreadable", status)
    return await readResponse(response, found, onProgress)
  } catch (error) {
    if (signal.aborted) return { kind: "cancelled" }
    if (error instanceof SyntaxError) return failed("unreadable", status)
    return failed(status === 0 ? "offline" : "broken", status)
  }
}
