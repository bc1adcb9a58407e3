/**
 * Lists blobs by prefix and labels, on this node or in the cluster.
 *
 * Source: document 1 §4 rule 5; DECISIONS, document 1, list; docs/decisions/0123-cluster-engine.md.
 */
import { Effect, Result, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { type BlobScope, Blobs, fromEngine } from "#actors/blob-storage/ports/engine.ts"
import { Cursors } from "#gateway/blob-storage/cursors.ts"
import { rejected } from "#gateway/blob-storage/fault.ts"
import { BlobId, type BlobLabels, labels_max, pageLimit } from "#schemas/blob-storage/blob.ts"
import { InvalidArgument } from "#schemas/blob-storage/rejection.ts"

/**
 * Maximum number of blobs whose labels are read for one page: each takes a read of the index and
 * the log.
 */
const examined_max = 10_000
/** In a cluster, each may take a request to another node. */
const examined_remote_max = 1000
/** Number of blobs listed per step before their labels are read, and of concurrent reads. */
const step_limit = 1000
const examined_at_once = 32

const prefix = "label."
const isBlobId = Schema.is(BlobId)

/** The ID after which the page begins. */
const placeOf = Effect.fnUntraced(function* (cursor: string) {
  const { open } = yield* Cursors
  const place = open(cursor)
  if (isBlobId(place)) return place
  return yield* new InvalidArgument({
    detail: "query.cursor: this node did not issue it; omit it to start with the first page.",
  })
})

/** The labels in a query: `label.<name>=<value>`, each name once. */
const requestedLabels = (url: string): Result.Result<BlobLabels, InvalidArgument> => {
  const start = url.indexOf("?")
  const labels = new Map<string, string>()
  for (const [key, value] of new URLSearchParams(start < 0 ? "" : url.slice(start))) {
    if (!key.startsWith(prefix)) continue
    const name = key.slice(prefix.length)
    if (labels.has(name)) {
      return Result.fail(new InvalidArgument({ detail: `query.${key}: it occurs twice.` }))
    }
    labels.set(name, value)
  }
  return labels.size <= labels_max
    ? Result.succeed(Object.fromEntries(labels))
    : Result.fail(new InvalidArgument({ detail: `query: at most ${labels_max} labels.` }))
}

export interface ListQuery {
  readonly cursor?: string
  readonly limit?: number
  readonly prefix?: string
  readonly scope?: BlobScope
}

interface Page {
  readonly prefix: string
  readonly scope: BlobScope
  readonly limit: number
  readonly after_id: BlobId | undefined
}

const pageOf = Effect.fnUntraced(function* ({ after_id, prefix, limit, scope }: Page) {
  const blobs = yield* Blobs
  return yield* rejected(fromEngine(() => blobs.list(after_id ?? "", prefix, limit, scope)))
})

/** The ID after which the next page begins; undefined on the last page. */
const placeAfter = ({ ids, has_more, after_id }: Effect.Success<ReturnType<typeof pageOf>>) => {
  const place = has_more ? (after_id ?? ids.at(-1)) : undefined
  return isBlobId(place) ? place : undefined
}

/** Selects the blobs with all of the labels; deleted ones are skipped. */
const withLabels = Effect.fnUntraced(function* (
  ids: ReadonlyArray<BlobId>,
  required: BlobLabels,
  scope: BlobScope,
) {
  const blobs = yield* Blobs
  const found = yield* Effect.forEach(
    ids,
    (id) =>
      fromEngine(() => blobs.stat(id, scope)).pipe(
        Effect.map(({ labels }) => Object.entries(required).every(([k, v]) => labels[k] === v)),
        Effect.catchTag("BlobNotFound", () => Effect.succeed(false)),
        rejected,
      ),
    { concurrency: examined_at_once },
  )
  return ids.filter((_, at) => found[at])
})

/**
 * A page of blobs with these labels. It has fewer than `limit` if the maximum number of blobs was
 * examined; the cursor then continues after the last of those.
 */
const filteredPage = Effect.fnUntraced(function* (page: Page, required: BlobLabels) {
  const max = page.scope === "cluster" ? examined_remote_max : examined_max
  const ids: Array<BlobId> = []
  let place = page.after_id
  for (let examined = 0; examined < max; ) {
    const step = yield* pageOf({ ...page, limit: step_limit, after_id: place })
    examined += Math.max(step.ids.length, 1)
    ids.push(...(yield* withLabels(step.ids, required, page.scope)))
    if (ids.length > page.limit) {
      const page_ids = ids.slice(0, page.limit)
      return { ids: page_ids, place: page_ids.at(-1) }
    }
    place = placeAfter(step)
    if (place === undefined) return { ids, place }
  }
  return { ids, place }
})

/** GET /v1/blobs. */
export const list = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  { cursor = "", limit, prefix = "", scope = "node" }: ListQuery,
) {
  const { seal } = yield* Cursors
  const required = yield* Effect.fromResult(requestedLabels(request.url))
  const after_id = cursor === "" ? undefined : yield* placeOf(cursor)
  const page: Page = { prefix, scope, limit: pageLimit(limit), after_id }
  if (Object.keys(required).length > 0) {
    const { ids, place } = yield* filteredPage(page, required)
    return place === undefined
      ? { ids, has_more: false }
      : { ids, has_more: true, next_cursor: seal(place) }
  }
  const found = yield* pageOf(page)
  const place = placeAfter(found)
  return place === undefined
    ? { ids: found.ids, has_more: false }
    : { ids: found.ids, has_more: true, next_cursor: seal(place) }
})
