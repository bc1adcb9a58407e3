/**
 * Writes the response to a request for a blob: its headers, its JSON, or a rejection.
 *
 * The JSON is concatenated manually, which is faster than the schemas and gives the same text.
 */
import { Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import type { PutReceipt as Durable } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { label_prefix } from "#gateway/blob-storage/direct/request.ts"
import { toRejection } from "#gateway/blob-storage/fault.ts"
import type { Exchange } from "#gateway/direct.ts"
import type { BlobId, BlobLabels, BlobMeta, PutReceipt } from "#schemas/blob-storage/blob.ts"
import { Rejection } from "#schemas/blob-storage/rejection.ts"
import type { Settings } from "#schemas/settings.ts"

export type Int64Form = Settings["json"]["int64"]

type Headers = Readonly<Record<string, string>>

const int64 = (value: bigint, form: Int64Form) => (form === "number" ? `${value}` : `"${value}"`)

/** BlobMeta. Policies and checksums contain no characters that JSON escapes. */
const metaText = (meta: BlobMeta, form: Int64Form) => {
  const { size, created_at, modified_at, checksum, labels, policy } = meta
  return (
    `{"size":${int64(size, form)},"created_at":${int64(created_at, form)},` +
    `"modified_at":${int64(modified_at, form)},"checksum":"${checksum}",` +
    `"labels":${JSON.stringify(labels)},"policy":"${policy}"}`
  )
}

/** Length of a text in UTF-8, in bytes. */
export const utf8Length = (text: string) => Buffer.byteLength(text)

/** The headers of a JSON response. */
export const jsonHeaders = (text: string): Headers => ({
  "content-type": "application/json",
  "content-length": `${utf8Length(text)}`,
})

/**
 * Where a put is durable, in addition to the document: identifies its fact in the log and the nodes
 * with copies. Undefined if this node has no name. Source: decision 0123.
 */
export const receiptOf = (
  { cursor, durable_on }: Durable,
  node_id: string | undefined,
): PutReceipt | undefined =>
  node_id === undefined
    ? undefined
    : {
        node_id,
        ...(cursor === undefined ? {} : { cursor }),
        durable_on: durable_on ?? [node_id],
      }

/** PutResponse. */
export const putText = (id: BlobId, meta: BlobMeta, form: Int64Form, receipt?: PutReceipt) =>
  `{"id":{"id":"${Buffer.from(id, "hex").toString("base64")}"},` +
  `"size":${int64(meta.size, form)},"meta":${metaText(meta, form)}` +
  `${receipt ? `,"receipt":${JSON.stringify(receipt)}` : ""}}`

/** The texts of a GetResponse before and after the digits of its data. */
export const getFrame = (meta: BlobMeta, form: Int64Form) => ({
  before: '{"data":"',
  after: `","meta":${metaText(meta, form)}}`,
})

/** StatResponse of a blob that exists. */
export const statText = (meta: BlobMeta, form: Int64Form) =>
  `{"exists":true,"meta":${metaText(meta, form)}}`

/** Many clients read at most 16 KiB of headers; half of that is left for other headers. */
const label_header_bytes_max = 8 * 1024

const percent = (text: string) =>
  Array.from(utf8.encode(text), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("")
const utf8 = new TextEncoder()

/** Characters that are invalid in a header's name or value, and the percent sign itself. */
const not_in_name = /[^a-z0-9!#$&'*+.^_`|~-]/gu
const not_in_value = /[^\x21-\x24\x26-\x7e ]|^ | $/gu

/** A lone surrogate cannot be encoded in UTF-8 and is sent as U+FFFD. */
const labelHeader = (name: string, is_cased: boolean) =>
  label_prefix + (is_cased ? name : name.toLowerCase()).replace(not_in_name, percent)

/**
 * These labels as headers. A name keeps its case, percent-encoded, only if two labels would
 * otherwise have the same name. Labels too large for headers are replaced by `X-Labels-Omitted`.
 */
export const labelHeaders = (labels: BlobLabels): Headers => {
  const entries = Object.entries(labels)
  const lower = entries.map(([name]) => labelHeader(name, false))
  const is_cased = new Set(lower).size < lower.length
  const headers = entries.map(([name, value]): [string, string] => [
    labelHeader(name, is_cased),
    value.replace(not_in_value, percent),
  ])
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return bytes > label_header_bytes_max
    ? { "x-labels-omitted": String(entries.length) }
    : Object.fromEntries(headers)
}

const encode = Schema.encodeSync(Rejection)

const classOf = (cause: unknown) => Rejection.members.find((member) => cause instanceof member)

/** The status in the annotations of a rejection's class. */
const statusOf = (rejection: Rejection) =>
  Number(classOf(rejection)?.ast.annotations?.httpApiStatus ?? 500)

/** Ends the request with this rejection; the door completes the response. */
export const reject = (exchange: Exchange, rejection: Rejection, headers: Headers = {}) =>
  exchange.refuse(
    HttpServerResponse.jsonUnsafe(encode(rejection), { status: statusOf(rejection), headers }),
  )

/** The thrown rejection, or the one for the engine's fault. */
const rejectionOf = (cause: unknown) =>
  // Only instances of the union's members have one of their classes.
  classOf(cause) === undefined ? toRejection(faultOf(cause)) : (cause as Rejection)

/** Ends the request with a thrown rejection or a fault of the engine. */
export const rejectCause = (exchange: Exchange, cause: unknown) =>
  reject(exchange, rejectionOf(cause))

/** Ends the request with a thrown rejection; any other error is a defect. */
export const rejectThrown = (exchange: Exchange, cause: unknown) => {
  if (classOf(cause) === undefined) exchange.fail(cause)
  else rejectCause(exchange, cause)
}

/** The body of a rejection after the status 200 was sent. */
export const rejectionBody = (exchange: Exchange, cause: unknown) =>
  exchange.complete(encode(rejectionOf(cause)))

/**
 * Continues with the engine's result. A fault of the engine becomes a rejection; an error in `next`
 * is a defect.
 */
export const after = <A>(exchange: Exchange, answer: Promise<A>, next: (answer: A) => void) => {
  answer.then(next, (cause) => rejectCause(exchange, cause)).catch((cause) => exchange.fail(cause))
}
