/** Reads the parameters, the query and the conditions of a request for a blob. */
import { Result, Schema } from "effect"
import { blob_id, put_stream_query, scope_query } from "#gateway/blob-storage/apis/blobs.ts"
import { refusedFields } from "#gateway/blob-storage/body/message-fields.ts"
import { decodedLabels, hasLabels } from "#gateway/blob-storage/labels.ts"
import type { Exchange } from "#gateway/direct.ts"
import { BlobId, BlobLabels } from "#schemas/blob-storage/blob.ts"
import { InvalidArgument } from "#schemas/blob-storage/rejection.ts"

const decoder = <S extends Schema.ConstraintDecoder<unknown>>(kind: string, schema: S) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (input: unknown): S["Type"] => {
    const decoded = decode(input)
    if (Result.isFailure(decoded)) throw refusedFields(kind, decoded.failure)
    return decoded.success
  }
}

const decodeParams = decoder("Params", Schema.Struct(blob_id))
const decodeLabels = decoder("X-Label", BlobLabels)
const decodePutStream = decoder("Query", Schema.Struct(put_stream_query))
const decodeScope = decoder("Query", Schema.Struct(scope_query))

const isBlobId = Schema.is(BlobId)

/** The blob that the path names. Throws InvalidArgument, as do all that follow. */
export const idOf = ({ params }: Exchange): BlobId =>
  isBlobId(params.id) ? params.id : decodeParams(params).id

/** A name that is given more than once has all of its values. */
const queryOf = ({ url }: Exchange) => {
  const start = url.indexOf("?")
  if (start === -1) return {}
  const all = new URLSearchParams(url.slice(start))
  const values = Array.from(new Set(all.keys()), (name) => {
    const given = all.getAll(name)
    return [name, given.length === 1 ? given[0] : given] as const
  })
  return Object.fromEntries(values)
}

/** The query of a put stream. */
export const putStreamQuery = (exchange: Exchange) => decodePutStream(queryOf(exchange))

/** Where to look or to delete, as the query names it. */
export const scopeOf = (exchange: Exchange) => decodeScope(queryOf(exchange)).scope

const no_labels: BlobLabels = {}

/** The labels in the headers of a put. */
export const headerLabels = ({ headers }: Exchange): BlobLabels =>
  hasLabels(headers) ? decodeLabels(decodedLabels(headers)) : no_labels

/** Whether a put is refused where the blob is stored already. */
export const isConditional = ({ headers }: Exchange) => {
  const condition = headers["if-none-match"]?.trim()
  if (condition === undefined || condition === "*") return condition === "*"
  throw new InvalidArgument({ detail: "If-None-Match of a put must be *." })
}

/** A body's media type, without parameters. */
export const typeOf = ({ headers: { "content-type": type = "" } }: Exchange) =>
  type.split(";", 1)[0]?.trim().toLowerCase() ?? ""
