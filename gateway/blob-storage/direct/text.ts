/** The direct routes' JSON, put together by hand: the text that the schemas make, in less time. */
import type { PutReceipt as Durable } from "#actors/blob-storage/blobs/engine.ts"
import { base64OfHex, utf8Length } from "#gateway/blob-storage/body/base64.ts"
import type { BlobId, BlobMeta, PutReceipt } from "#schemas/blob-storage/blob.ts"
import type { Settings } from "#schemas/settings.ts"

export type Int64Form = Settings["json"]["int64"]

const int64 = (value: bigint, form: Int64Form) => (form === "number" ? `${value}` : `"${value}"`)

/** BlobMeta. Policies and checksums hold nothing that JSON would escape. */
const metaText = (meta: BlobMeta, form: Int64Form) => {
  const { size, created_at, modified_at, checksum, labels, policy } = meta
  return (
    `{"size":${int64(size, form)},"created_at":${int64(created_at, form)},` +
    `"modified_at":${int64(modified_at, form)},"checksum":"${checksum}",` +
    `"labels":${JSON.stringify(labels)},"policy":"${policy}"}`
  )
}

/** The headers of a JSON answer. */
export const jsonHeaders = (text: string): Readonly<Record<string, string>> => ({
  "content-type": "application/json",
  "content-length": `${utf8Length(text)}`,
})

/**
 * Where a put is durable, beyond the document: enough to find its fact in the log, and the nodes to
 * ask for their copies. Undefined where this node has no name. Source: decision 0123.
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
  `{"id":{"id":"${base64OfHex(id)}"},"size":${int64(meta.size, form)},` +
  `"meta":${metaText(meta, form)}${receipt ? `,"receipt":${JSON.stringify(receipt)}` : ""}}`

/** The texts of a GetResponse before and after the digits of its data. */
export const getFrame = (meta: BlobMeta, form: Int64Form) => ({
  before: '{"data":"',
  after: `","meta":${metaText(meta, form)}}`,
})

/** StatResponse of a blob that is here. */
export const statText = (meta: BlobMeta, form: Int64Form) =>
  `{"exists":true,"meta":${metaText(meta, form)}}`
