/** One search: asks for a range, and reads the answer line by line as it comes. */
import type { Carrier, Progress, Summary } from "./api.ts"
import type { Range } from "./range.ts"

/** Carriers in the order in which they came, which is by number. */
export interface Found {
  readonly numbers: number[]
  readonly names: string[]
}

export interface Failure {
  /**
   * offline: no answer; refused: the range or the form; busy: later; registry: 502; server: other
   * statuses; broken: the answer ended before its last line; unreadable: it is not a search's.
   */
  readonly kind: "offline" | "refused" | "busy" | "registry" | "server" | "broken" | "unreadable"
  readonly status: number
  /** The server's own words; empty where it had none. */
  readonly said: string
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

/** A line holds one carrier; one that is longer is none of a search's. */
const line_chars_max = 1_000_000
/** How long lines are read before the browser may paint. */
const slice_ms = 12

const failed = (kind: Failure["kind"], status: number, said = ""): Outcome => ({
  kind: "failed",
  failure: { kind, status, said },
})

const kindOf = (status: number): Failure["kind"] => {
  if (status === 502) return "registry"
  if (status === 429 || status === 503) return "busy"
  return status < 500 ? "refused" : "server"
}

/** `{error}`, where the answer is one. */
const errorIn = async (response: Response) => {
  try {
    const body: unknown = await response.json()
    const said = typeof body === "object" && body !== null ? Reflect.get(body, "error") : undefined
    return typeof said === "string" ? said : ""
  } catch {
    return ""
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve))

/** The lines of a body, several at a time; what follows the last line's end is no line. */
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
      if (rest.length > line_chars_max) throw new SyntaxError("a line without end")
      yield lines
    }
  } finally {
    // What comes after the last line, or after an error, is not waited for.
    reader.cancel().catch(() => undefined)
  }
}

/** The one place where the server is taken at its word; a test holds the shapes equal. */
const lineOf = (text: string): Line => {
  const line: unknown = JSON.parse(text)
  if (typeof line !== "object" || line === null) throw new SyntaxError("no object")
  return line as Line
}

/** That something came: how far it is, or carriers. */
type Told = (progress?: Progress) => void

/** Takes one line in; an outcome where it is the last. */
const take = (line: Line, found: Found, status: number, told: Told): Outcome | undefined => {
  if ("mcNumber" in line) {
    found.numbers.push(line.mcNumber)
    found.names.push(line.name)
  } else if ("progress" in line) {
    told(line.progress)
  } else if ("summary" in line) {
    return { kind: "done", summary: line.summary }
  } else if ("error" in line) {
    return failed("registry", status, line.error)
  }
  return undefined
}

const readAnswer = async (response: Response, found: Found, told: Told): Promise<Outcome> => {
  const { body, status } = response
  if (body === null) return failed("unreadable", status)
  let since = performance.now()
  for await (const lines of linesOf(body)) {
    for (const text of lines) {
      if (text === "") continue
      const outcome = take(lineOf(text), found, status, told)
      if (outcome) return outcome
      if (performance.now() - since > slice_ms) {
        await pause()
        since = performance.now()
      }
    }
    told()
  }
  return failed("broken", status)
}

/**
 * Searches the range; carriers go into `found` as they come. Ends early when `signal` says so,
 * which ends it on the server too. Never rejects.
 */
export const search = async (
  { start, end }: Range,
  found: Found,
  told: Told,
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
    if (!response.ok) return failed(kindOf(status), status, await errorIn(response))
    const type = response.headers.get("content-type") ?? ""
    if (!type.startsWith("application/x-ndjson")) return failed("unreadable", status)
    return await readAnswer(response, found, told)
  } catch (error) {
    if (signal.aborted) return { kind: "cancelled" }
    if (error instanceof SyntaxError) return failed("unreadable", status)
    return failed(status === 0 ? "offline" : "broken", status)
  }
}
