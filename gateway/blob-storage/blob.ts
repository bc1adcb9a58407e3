/**
 * BlobService on one node: who handles its endpoints.
 *
 * `scope=cluster` of delete, stat and list is accepted; a node alone is the whole cluster.
 *
 * Source: document 1 §4 BlobService, rules 3 to 5; DECISIONS, document 1, list, delete.
 */
import { Context, Effect, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { BlobStore } from "#actors/blob-storage/blob-store.ts"
import { BlobApi } from "#gateway/blob-storage/blob-api.ts"
import { worded } from "#gateway/blob-storage/blob-fault.ts"
import { get, getStream } from "#gateway/blob-storage/blob-get.ts"
import { putJson, putStream } from "#gateway/blob-storage/blob-put.ts"
import { Cursors } from "#gateway/blob-storage/cursors.ts"
import { answer } from "#gateway/json.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { BlobId, pageLimit, StatResponse } from "#schemas/blob-storage/blob.ts"
import { InvalidArgument } from "#schemas/blob-storage/rejection.ts"

const stat_answer = answer(StatResponse)

const stat = Effect.fnUntraced(function* (id: BlobId) {
  const store = yield* BlobStore
  const found = yield* store.stat(id).pipe(
    Effect.map((meta) => ({ exists: true, meta })),
    Effect.catchTag("BlobNotFound", () => Effect.succeed({ exists: false })),
    Effect.mapError(worded),
  )
  return yield* stat_answer(found)
})

const remove = Effect.fnUntraced(function* (id: BlobId) {
  const store = yield* BlobStore
  const { caller, request_id, correlation_id } = yield* RequestContext
  const origin = { actor: caller.actor, request_id, correlation_id }
  return { deleted: yield* Effect.mapError(store.delete(id, origin), worded) }
})

const isBlobId = Schema.is(BlobId)

/** The ID behind which the page begins. */
const placeOf = Effect.fnUntraced(function* (cursor: string) {
  const { open } = yield* Cursors
  const place = open(cursor)
  if (isBlobId(place)) return place
  return yield* new InvalidArgument({ detail: "query.cursor: this node did not issue it." })
})

interface Page {
  readonly cursor?: string
  readonly limit?: number
  readonly prefix?: string
}

const list = Effect.fnUntraced(function* ({ cursor = "", limit, prefix = "" }: Page) {
  const store = yield* BlobStore
  const { seal } = yield* Cursors
  const after = cursor === "" ? {} : { after_id: yield* placeOf(cursor) }
  const page = { ...after, prefix, limit: pageLimit(limit) }
  const { ids, has_more } = yield* Effect.mapError(store.list(page), worded)
  const last = ids.at(-1)
  if (!has_more || last === undefined) return { ids, has_more: false }
  return { ids, has_more, next_cursor: seal(last) }
})

/** The handlers, on the store and the cursors that are there when the service starts. */
export const blobs = HttpApiBuilder.group(
  BlobApi,
  "blobs",
  Effect.fnUntraced(function* (handlers) {
    const services = Context.make(BlobStore, yield* BlobStore).pipe(
      Context.add(Cursors, yield* Cursors),
    )
    const here = Effect.provideContext(services)
    return handlers
      .handleRaw("put", ({ request }) => here(putJson(request)))
      .handleRaw("put_stream", ({ request, query }) => here(putStream(request, query)))
      .handle("list", ({ query }) => here(list(query)))
      .handle("get", ({ request, params }) => here(get(request, params.id)))
      .handle("get_stream", ({ request, params }) => here(getStream(request, params.id)))
      .handle("delete", ({ params }) => here(remove(params.id)))
      .handle("stat", ({ params }) => here(stat(params.id)))
  }),
)
