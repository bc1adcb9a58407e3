/**
 * BlobService's hot routes: which requests are plain enough for them.
 *
 * Source: document 1 §4 BlobService; DESIGN, the exception: bytes, hot routes; decision 0114.
 */
import { Option, Schema } from "effect"
import type { BlobEngine } from "#actors/blob-storage/blobs/engine.ts"
import { unspecified } from "#gateway/blob-storage/blob-put.ts"
import { prefersBytes } from "#gateway/blob-storage/direct/byte-range.ts"
import {
  getBytes,
  getJson,
  getStat,
  type HotGets,
  jsonHeaders,
} from "#gateway/blob-storage/direct/get.ts"
import { type HotPuts, type PutSaid, putBytes } from "#gateway/blob-storage/direct/put.ts"
import { putJson } from "#gateway/blob-storage/direct/put-json.ts"
import { after } from "#gateway/blob-storage/direct/refusal.ts"
import { decodedLabels, hasLabels } from "#gateway/blob-storage/labels.ts"
import type {
  HotEndpoint,
  HotHeaders,
  HotPlan,
  HotRequest,
  HotRoutes,
  HotVisit,
} from "#gateway/direct.ts"
import { type BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

export type HotBlobs = HotGets & HotPuts & { readonly engine: Pick<BlobEngine, "delete"> }

const at = (method: string, path: string): HotEndpoint => ({ method, path })

const put = at("PUT", "/v1/blobs")
const put_stream = at("POST", "/v1/blobs/stream")
const get = at("GET", "/v1/blobs/:id")
const get_stream = at("GET", "/v1/blobs/:id/stream")
const stat = at("GET", "/v1/blobs/:id/stat")
const remove = at("DELETE", "/v1/blobs/:id")

const typeOf = ({ "content-type": type = "" }: HotHeaders) =>
  type.includes(";") ? type.slice(0, type.indexOf(";")).trim().toLowerCase() : type

/** A put's condition is a star or nothing. */
const isConditionKnown = ({ "if-none-match": condition }: HotHeaders) =>
  condition === undefined || condition.trim() === "*"

const isPolicy = Schema.is(ReplicationPolicy)
const decodeLabels = Schema.decodeUnknownOption(BlobLabels)
const no_labels: BlobLabels = {}

const labelsOf = (headers: HotHeaders) =>
  hasLabels(headers) ? Option.getOrUndefined(decodeLabels(decodedLabels(headers))) : no_labels

const with_policy = `${put_stream.path}?policy=`

/** The policy that the address of a put stream names; undefined for the plain route to look at. */
const policyOf = (url: string) => {
  if (url === put_stream.path) return unspecified
  const policy = url.startsWith(with_policy) ? url.slice(with_policy.length) : ""
  return isPolicy(policy) ? policy : undefined
}

/** What a put of plain bytes says of itself; undefined for the plain route to look at. */
const saidOf = (url: string, headers: HotHeaders): PutSaid | undefined => {
  if (typeOf(headers) !== "application/octet-stream" || !isConditionKnown(headers)) return undefined
  const policy = policyOf(url)
  const labels = policy && labelsOf(headers)
  return policy && labels && { policy, labels }
}

const hasBody = (headers: HotHeaders) =>
  headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined

const one_blob = /^\/v1\/blobs\/([\da-f]{32})(\/stream|\/stat)?$/

const isRaw = (accept: string | undefined) =>
  accept === "application/octet-stream" || (accept !== undefined && prefersBytes(accept))

const deleted = '{"deleted":true}'

/** DELETE of one blob, here or not. */
const removeBlob = ({ engine }: HotBlobs, visit: HotVisit, id: BlobId) => {
  const { caller, request_id, correlation_id } = visit
  const origin = { actor: caller.actor, request_id, correlation_id }
  after(visit, engine.delete(id, origin, visit.now()), () =>
    visit.answer(200, jsonHeaders(deleted), deleted),
  )
}

/** What a GET asks for of one blob. */
const readPlan = (
  blobs: HotBlobs,
  id: BlobId,
  below: string | undefined,
  is_raw: boolean,
): HotPlan | undefined => {
  if (below === "/stat") return { endpoint: stat, run: (visit) => getStat(blobs, visit, id) }
  const endpoint = below === undefined ? get : get_stream
  if (is_raw) return { endpoint, run: (visit) => getBytes(blobs, visit, id) }
  return below === undefined ? { endpoint, run: (visit) => getJson(blobs, visit, id) } : undefined
}

const planOfBlob = (
  blobs: HotBlobs,
  { method, url = "" }: HotRequest,
  headers: HotHeaders,
): HotPlan | undefined => {
  const [, hex, below] = one_blob.exec(url) ?? []
  if (hex === undefined || hasBody(headers)) return undefined
  // The pattern is that of the brand.
  const id = hex as BlobId
  const is_raw = isRaw(headers.accept)
  if (method === "GET") return readPlan(blobs, id, below, is_raw)
  if (method === "HEAD") {
    return is_raw && below !== "/stat" ? readPlan(blobs, id, below, true) : undefined
  }
  return below === undefined
    ? { endpoint: remove, run: (visit) => removeBlob(blobs, visit, id) }
    : undefined
}

const planOfPut = (
  blobs: HotBlobs,
  { method, url = "" }: HotRequest,
  headers: HotHeaders,
): HotPlan | undefined => {
  if (method === "PUT") {
    const is_plain = url === put.path && typeOf(headers) === "application/json"
    return is_plain && isConditionKnown(headers)
      ? { endpoint: put, run: (visit) => putJson(blobs, visit) }
      : undefined
  }
  const said = saidOf(url, headers)
  return said && { endpoint: put_stream, run: (visit) => putBytes(blobs, visit, said) }
}

const reads = new Set(["GET", "HEAD", "DELETE"])
const writes = new Set(["PUT", "POST"])

/** The hot routes over this engine. */
export const hotBlobs = (blobs: HotBlobs): HotRoutes => ({
  endpoints: [put, put_stream, get, get_stream, stat, remove],
  plan: (request, headers) => {
    const { method = "" } = request
    if (reads.has(method)) return planOfBlob(blobs, request, headers)
    return writes.has(method) ? planOfPut(blobs, request, headers) : undefined
  },
})
