/** `almanac blobs`: lists and describes blobs. Source: document 1 §4 BlobService. */
import { hexOf } from "#cli/client/blob-storage/id.ts"
import {
  fromJson,
  isList,
  isObject,
  type Json,
  type JsonObject,
  memberAt,
  textAt,
  toJson,
} from "#cli/client/json.ts"
import type { CommandGroup } from "#cli/client/operation.ts"
import { addressOf, type Pairs } from "#cli/client/request.ts"
import { listing, type Session } from "#cli/client/session.ts"

/** Maximum number of ids per page, and per batch request. Source: document 1 §8. */
const page_limit_max = 10_000
const batch_ids = 1_000

/** Their commands are in cli/blobs/blobs.ts. */
export const blobs: CommandGroup = {
  name: "blobs",
  operations: [],
  covered: [
    { method: "POST", path: "/v1/blobs/stream", query: ["policy"] },
    { method: "GET", path: "/v1/blobs", query: ["cursor", "limit", "prefix", "scope"] },
    { method: "GET", path: "/v1/blobs/{id}" },
    { method: "GET", path: "/v1/blobs/{id}/stat", query: ["scope"] },
    { method: "POST", path: "/v1/blobs/stat", query: ["scope"] },
    { method: "DELETE", path: "/v1/blobs/{id}", query: ["scope"] },
    { method: "POST", path: "/v1/cluster/compact" },
  ],
}

export interface ListOptions {
  readonly prefix: string | undefined
  readonly scope: "node" | "cluster"
  readonly labels: Pairs
  /** Maximum number of blobs; 0 for all. */
  readonly limit: number
  /** Whether to show size, time, policy and labels. */
  readonly is_long: boolean
}

/** A 64-bit integer, which the server sends as a string if its `json.int64` is "string". */
const integerOf = (value: Json | undefined) =>
  typeof value === "string" && /^\d+$/.test(value) ? fromJson(value) : (value ?? null)

/** Converts nanoseconds to RFC 3339; beyond 2^53 they arrive as a bigint. */
const instantOf = (value: Json | undefined) => {
  const ns = integerOf(value)
  return typeof ns === "bigint" || typeof ns === "number"
    ? new Date(Number(BigInt(ns) / 1_000_000n)).toISOString()
    : null
}

/** Flat fields of a blob: times as RFC 3339, the policy without its prefix. */
export const blobFields = (id: string, meta: Json | undefined): JsonObject => ({
  id,
  size: integerOf(memberAt(meta, "size")),
  created_at: instantOf(memberAt(meta, "created_at")),
  policy: textAt(meta, "policy")?.replace("REPLICATION_POLICY_", "") ?? null,
  labels: memberAt(meta, "labels") ?? {},
  checksum: textAt(meta, "checksum") ?? null,
})

const details = async (session: Session, ids: ReadonlyArray<string>, scope: string) => {
  const { http, signal } = session
  const { text } = await http.text({
    method: "POST",
    path: `/v1/blobs/stat?scope=${scope}`,
    need: "blob",
    signal,
    body: toJson(ids),
    headers: { "content-type": "application/json" },
  })
  const lines = text.split("\n").filter((line) => line !== "")
  return lines.map((line) => {
    const one = fromJson(line)
    return blobFields(hexOf(memberAt(one, "id")), memberAt(one, "meta"))
  })
}

/** Lists blobs, page by page. */
export const listBlobs = async (session: Session, options: ListOptions) => {
  const { http, signal, screen } = session
  const { prefix, scope, labels, is_long } = options
  const limit = options.limit === 0 ? Number.POSITIVE_INFINITY : options.limit
  const fixed = [
    ...(prefix === undefined ? [] : [["prefix", prefix] as const]),
    ["scope", scope] as const,
    ...Object.entries(labels).map(([name, value]) => [`label.${name}`, value] as const),
  ]
  const columns = is_long ? ["id", "size", "created_at", "policy", "labels"] : ["id"]
  const output = listing(session, columns)
  let count = 0
  let cursor: string | undefined
  do {
    const query = [
      ...fixed,
      ["limit", String(Math.min(page_limit_max, limit - count))] as const,
      ...(cursor === undefined ? [] : [["cursor", cursor] as const]),
    ]
    const path = addressOf("/v1/blobs", query)
    const { body } = await http.json({ method: "GET", path, need: "blob", signal })
    const ids = (isObject(body) && isList(body.ids) ? body.ids : []).map(hexOf)
    for (let at = 0; at < ids.length; at += batch_ids) {
      const batch = ids.slice(at, at + batch_ids)
      output.add(is_long ? await details(session, batch, scope) : batch.map((id) => ({ id })))
      // Backpressure: wait for the reader instead of buffering.
      await screen.drained(signal)
    }
    count += ids.length
    cursor = memberAt(body, "has_more") === true ? textAt(body, "next_cursor") : undefined
  } while (cursor !== undefined && count < limit)
  output.end()
  if (cursor !== undefined) screen.err("More blobs exist: --limit 0 shows all.\n")
}
