/**
 * The direct routes of BlobService: every request for the bytes of one blob, its metadata or its
 * deletion, in JSON or as bytes.
 *
 * Source: document 1 §4 BlobService, rules 1 to 4; DESIGN, the exception: bytes.
 */
import type { BlobEngine } from "#actors/blob-storage/ports/engine.ts"
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import { prefersBytes } from "#gateway/blob-storage/direct/byte-range.ts"
import { type DirectGets, getBytes } from "#gateway/blob-storage/direct/get.ts"
import { getJson, getLines } from "#gateway/blob-storage/direct/get-json.ts"
import { type DirectPuts, putBytes } from "#gateway/blob-storage/direct/put.ts"
import { putChunks } from "#gateway/blob-storage/direct/put-chunks.ts"
import { putJson } from "#gateway/blob-storage/direct/put-json.ts"
import { idOf, putStreamQuery, scopeOf, typeOf } from "#gateway/blob-storage/direct/request.ts"
import {
  after,
  jsonHeaders,
  rejectCause,
  rejectThrown,
  statText,
} from "#gateway/blob-storage/direct/response.ts"
import type { DirectRoute, Exchange } from "#gateway/direct.ts"

export type DirectBlobs = DirectGets & DirectPuts & { readonly engine: Pick<BlobEngine, "delete"> }

const bytes_type = "application/octet-stream"

const isRaw = ({ headers: { accept } }: Exchange) =>
  accept === bytes_type || (accept !== undefined && prefersBytes(accept))

/** POST /v1/blobs/stream: chunks as NDJSON or as a JSON array, or plain bytes by Content-Type. */
const putStream = (blobs: DirectBlobs, exchange: Exchange) => {
  const query = putStreamQuery(exchange)
  const type = typeOf(exchange)
  if (type === bytes_type) return putBytes(blobs, exchange, query)
  putChunks(blobs, exchange, query, type !== "application/json")
}

const get = (blobs: DirectBlobs, exchange: Exchange) => {
  const id = idOf(exchange)
  if (isRaw(exchange)) getBytes(blobs, exchange, id)
  else getJson(blobs, exchange, id)
}

const getStream = (blobs: DirectBlobs, exchange: Exchange) => {
  const id = idOf(exchange)
  if (isRaw(exchange)) getBytes(blobs, exchange, id)
  else getLines(blobs, exchange, id)
}

const deleted = '{"deleted":true}'

const remove = ({ engine }: DirectBlobs, exchange: Exchange) => {
  const id = idOf(exchange)
  const scope = scopeOf(exchange)
  const { caller, request_id, correlation_id } = exchange.context
  const origin = { actor: caller.actor, request_id, correlation_id }
  after(exchange, engine.delete(id, origin, exchange.now(), scope), () =>
    exchange.answer(200, jsonHeaders(deleted), deleted),
  )
}

const stat = ({ engine, int64 }: DirectBlobs, exchange: Exchange) => {
  const answer = (text: string) => exchange.answer(200, jsonHeaders(text), text)
  engine
    .stat(idOf(exchange), scopeOf(exchange))
    .then(
      (meta) => answer(statText(meta, int64)),
      (cause) => {
        if (faultOf(cause)._tag === "BlobNotFound") answer('{"exists":false}')
        else rejectCause(exchange, cause)
      },
    )
    .catch(exchange.fail)
}

/** The direct routes over this engine. */
export const directBlobs = (blobs: DirectBlobs): ReadonlyArray<DirectRoute> => {
  const route = (
    method: string,
    path: string,
    run: (blobs: DirectBlobs, exchange: Exchange) => void,
  ): DirectRoute => ({
    method,
    path,
    run: (exchange) => {
      try {
        run(blobs, exchange)
      } catch (cause) {
        rejectThrown(exchange, cause)
      }
    },
  })
  return [
    route("PUT", "/v1/blobs", putJson),
    route("POST", "/v1/blobs/stream", putStream),
    route("GET", "/v1/blobs/:id", get),
    route("GET", "/v1/blobs/:id/stream", getStream),
    route("GET", "/v1/blobs/:id/stat", stat),
    route("DELETE", "/v1/blobs/:id", remove),
  ]
}
