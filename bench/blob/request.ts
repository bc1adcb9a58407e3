/** A request of the blob suite as its load clients send it, with placeholders for unique names. */
import { randomFillSync } from "node:crypto"
import type { Round } from "../harness/round.ts"

/** The placeholder in a head or tail for each request's unique name. */
export const unique_mark = "\u0001"

/** Characters of a unique name: 8 for the round, 8 for the request's number, in hex. */
export const unique_chars = 16

export interface BlobRequest {
  /** Everything before the body, with its last line break; may contain `unique_mark`. */
  readonly head: string
  /** Size of the blob in bytes; 0 if the request has none. */
  readonly blob_bytes: number
  /** `json`: as the base64 `data` of a JSON object. */
  readonly form: "plain" | "json"
  /** Follows the body. */
  readonly tail: string
}

/** One round of load on one server. */
export interface BlobOrder {
  readonly protocol: "http" | "resp"
  /** The port on 127.0.0.1. */
  readonly port: number
  /** Sent in turn; their bodies all have the same form and size. */
  readonly requests: ReadonlyArray<BlobRequest>
  readonly connections: number
  readonly seconds: number
  readonly runs_max: number
  /** The first part of the names in this round. */
  readonly round: number
  /** Whether to return the responses as text. */
  readonly is_kept: boolean
}

export interface BlobRound extends Round {
  readonly p999_ms: number
  /** The load client's share of one core; near 1, the client is the bottleneck. */
  readonly client_busy: number
}

const json_before = '{"data":"'
const json_after = '"}'

/** Size of a blob's body in this form. */
export const bodyBytes = (blob_bytes: number, form: BlobRequest["form"]): number =>
  form === "plain"
    ? blob_bytes
    : Math.ceil(blob_bytes / 3) * 4 + json_before.length + json_after.length

const crlf = "\r\n"

/** The head of an HTTP request to 127.0.0.1. */
export const httpHead = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body_bytes?: number,
): string => {
  const lines = Object.entries({
    host: "127.0.0.1",
    ...headers,
    ...(body_bytes === undefined ? {} : { "content-length": String(body_bytes) }),
  })
  const fields = lines.map(([name, value]) => `${name}: ${value}${crlf}`).join("")
  return `${method} ${path} HTTP/1.1${crlf}${fields}${crlf}`
}

/** A command of Redis's protocol whose last part is a blob. */
export const respHead = (parts: ReadonlyArray<string>, blob_bytes?: number): string => {
  const count = parts.length + (blob_bytes === undefined ? 0 : 1)
  const texts = parts.map((part) => {
    const bytes = part === unique_mark ? unique_chars : part.length
    return `$${bytes}${crlf}${part}${crlf}`
  })
  const last = blob_bytes === undefined ? "" : `$${blob_bytes}${crlf}`
  return `*${count}${crlf}${texts.join("")}${last}`
}

/**
 * A body of random bytes, whose first `unique_chars` bytes of data are for the request's name. Thus
 * the stored data never repeats, and no store can compress it.
 */
export const randomBody = ({ blob_bytes, form }: BlobRequest) => {
  const blob = randomFillSync(Buffer.allocUnsafe(blob_bytes))
  if (form === "plain") return { body: blob, unique_at: 0 }
  const text = `${json_before}${blob.toString("base64")}${json_after}`
  return { body: Buffer.from(text, "latin1"), unique_at: json_before.length }
}

/** The name of the n-th request of a round; its hex digits are also valid base64. */
export const uniqueName = (round: number, n: number): string =>
  round.toString(16).padStart(8, "0") + n.toString(16).padStart(8, "0")
