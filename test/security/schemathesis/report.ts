/** Reads a report of schemathesis: the responses, and the checks that failed. */
import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"

/**
 * Document 1 §7 and DECISIONS, truncated put stream: a stream without its first or last chunk is
 * 500, although it is the client's error.
 */
const truncated = "The put stream ended "

const body_shown = 400
const error_shown = 2000

interface Bytes {
  readonly $base64: string
}

interface Interaction {
  readonly request: { readonly method: string; readonly uri: string; readonly body?: Bytes | null }
  readonly response?: { readonly status_code: number; readonly content?: Bytes | null } | null
}

interface Check {
  readonly name: string
  readonly status: string
  readonly failure_info?: { readonly failure?: { readonly title?: string; message?: string } }
}

interface Case {
  readonly value: { readonly meta?: { readonly generation?: { readonly mode?: string } } | null }
}

interface Recorder {
  readonly label: string
  readonly cases?: Readonly<Record<string, Case>>
  readonly checks?: Readonly<Record<string, ReadonlyArray<Check>>>
  readonly interactions?: Readonly<Record<string, Interaction>>
}

/** Number of responses by status. */
export type Statuses = Map<number, number>

/** The findings of a run. */
export interface Found {
  readonly checks: Map<string, number>
  readonly negative: Statuses
  /** Statuses of valid requests, by operation. */
  readonly positive: Map<string, Statuses>
  /** The last valid request that each operation rejected, and the response. */
  readonly rejected: Map<string, string>
  /** Each failed check with its request, to reproduce it. */
  readonly wrong: Array<string>
}

/** Rejected as malformed; 422 depends on what exists. */
const invalid = new Set([400, 413, 415])
export const isInvalid = (status: number) => invalid.has(status)

const textOf = (bytes: Bytes | null | undefined) =>
  Buffer.from(bytes?.$base64 ?? "", "base64")
    .toString()
    .slice(0, body_shown)

const count = <Key>(counts: Map<Key, number>, key: Key) =>
  void counts.set(key, (counts.get(key) ?? 0) + 1)

const read = (found: Found, { label, cases = {}, checks = {}, interactions = {} }: Recorder) => {
  const statuses = found.positive.get(label) ?? new Map<number, number>()
  found.positive.set(label, statuses)
  for (const [id, { value }] of Object.entries(cases)) {
    const { request, response } = interactions[id] ?? {}
    if (request === undefined) continue
    const sent = `${request.method} ${request.uri} ${textOf(request.body)}`
    if (response === undefined || response === null) {
      found.wrong.push(`no response: ${sent}`)
      continue
    }
    const status = response.status_code
    const text = textOf(response.content)
    const is_positive = value.meta?.generation?.mode === "positive"
    count(is_positive ? statuses : found.negative, status)
    if (is_positive && isInvalid(status)) found.rejected.set(label, `${sent} -> ${status} ${text}`)
    for (const { name, status: outcome, failure_info } of checks[id] ?? []) {
      count(found.checks, name)
      if (outcome === "success" || (status === 500 && text.includes(truncated))) continue
      const { title = "", message = "" } = failure_info?.failure ?? {}
      found.wrong.push(`${name} (${title} ${message}): ${sent} -> ${status} ${text}`)
    }
  }
}

/** Reads the report, whose lines are events. A run that was cut off has fewer of them. */
export const readReport = async (path: string): Promise<Found> => {
  const found: Found = {
    checks: new Map(),
    negative: new Map(),
    positive: new Map(),
    rejected: new Map(),
    wrong: [],
  }
  for await (const line of createInterface(createReadStream(path))) {
    // An operation that could not be tested.
    if (line.startsWith('{"NonFatalError"')) found.wrong.push(line.slice(0, error_shown))
    if (!line.startsWith('{"ScenarioFinished"')) continue
    const { ScenarioFinished } = JSON.parse(line)
    read(found, ScenarioFinished.recorder)
  }
  return found
}
