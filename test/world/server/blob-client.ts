/** Blobs over HTTP, in each form that document 1 and DECISIONS define. */
import { blake3 } from "@napi-rs/blake-hash"
import { type Client, responseText } from "./client.ts"

/** Data bytes per stream message here, so that most blobs need several. */
const message_bytes = 48_000
/** The maximum page size of a list. */
const list_limit = 10_000
/** DECISIONS: a blob's identifier is the first half of its BLAKE3-256. */
const id_digits = 32

export const put_forms = ["json", "raw", "lines", "array"] as const
export type PutForm = (typeof put_forms)[number]

export const get_forms = ["json", "raw", "lines"] as const
export type GetForm = (typeof get_forms)[number]

const base64 = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")

/** The identifier and the checksum of these bytes, computed without the server. */
export const hashed = (bytes: Uint8Array) => {
  const digest = blake3(bytes)
  return { id: digest.toString("hex").slice(0, id_digits), checksum: digest.toString("base64") }
}

const messagesOf = (bytes: Uint8Array) => {
  const count = Math.max(1, Math.ceil(bytes.length / message_bytes))
  return Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      data: base64(bytes.subarray(i * message_bytes, (i + 1) * message_bytes)),
      final: i === count - 1,
    }),
  )
}

const requests: {
  readonly [Form in PutForm]: (bytes: Uint8Array) => {
    readonly method: string
    readonly path: string
    readonly type: string
    readonly body: Uint8Array | string
  }
} = {
  json: (bytes) => ({
    method: "PUT",
    path: "/v1/blobs",
    type: "application/json",
    body: JSON.stringify({ data: base64(bytes) }),
  }),
  raw: (bytes) => ({
    method: "POST",
    path: "/v1/blobs/stream",
    type: "application/octet-stream",
    body: bytes,
  }),
  lines: (bytes) => ({
    method: "POST",
    path: "/v1/blobs/stream",
    type: "application/x-ndjson",
    body: messagesOf(bytes).join("\n"),
  }),
  array: (bytes) => ({
    method: "POST",
    path: "/v1/blobs/stream",
    type: "application/json",
    body: `[${messagesOf(bytes).join(",")}]`,
  }),
}

/** Puts bytes in the given form; returns any response. */
export const putBlob = (client: Client, bytes: Uint8Array, form: PutForm, headers = {}) => {
  const { method, path, type, body } = requests[form](bytes)
  return client.ask(method, path, { body, headers: { "content-type": type, ...headers } })
}

const bytesFrom: { readonly [Form in GetForm]: (body: Buffer) => Buffer } = {
  raw: (body) => body,
  json: (body) => Buffer.from(JSON.parse(body.toString()).data, "base64"),
  lines: (body) => {
    const messages = body.toString().trimEnd().split("\n")
    const chunks = messages.map((line) => JSON.parse(line))
    const finals = chunks.filter(({ final }) => final === true).length
    if (finals !== 1 || chunks.at(-1)?.final !== true) throw new Error("a stream without its end")
    return Buffer.concat(chunks.map(({ data }) => Buffer.from(data, "base64")))
  },
}

/** Gets the bytes of a blob in the given form; fails unless the response is 200 and complete. */
export const getBlob = async (client: Client, id: string, form: GetForm) => {
  const path = `/v1/blobs/${id}${form === "lines" ? "/stream" : ""}`
  const accept = form === "raw" ? "application/octet-stream" : "application/json"
  const answer = await client.ask("GET", path, { headers: { accept } })
  if (answer.status !== 200) throw new Error(`GET ${path}: ${responseText(answer)}`)
  return bytesFrom[form](answer.body)
}

interface Listed {
  readonly ids: ReadonlyArray<{ readonly id: string }>
  readonly next_cursor?: string
}

/** Every identifier that the node lists, page by page, in hex. */
export const listBlobs = async (client: Client, limit = list_limit) => {
  const ids: Array<string> = []
  let cursor: string | undefined
  do {
    const query = new URLSearchParams({ limit: String(limit), ...(cursor && { cursor }) })
    const page: Listed = await client.json("GET", `/v1/blobs?${query}`)
    ids.push(...page.ids.map(({ id }) => Buffer.from(id, "base64").toString("hex")))
    cursor = page.next_cursor
  } while (cursor !== undefined)
  return ids
}
