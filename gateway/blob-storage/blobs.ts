/**
 * BlobService on one node: who handles its endpoints.
 *
 * Source: document 1 §4 BlobService, rules 3 to 5; DECISIONS, document 1, list, delete.
 */
import { Context, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type BlobScope, BlobStore } from "#actors/blob-storage/blobs/store.ts"
import { BlobApi } from "#gateway/blob-storage/apis/blobs.ts"
import { getBatch, statBatch } from "#gateway/blob-storage/batch.ts"
import { get, getStream } from "#gateway/blob-storage/blob-get.ts"
import { putJson, putStream } from "#gateway/blob-storage/blob-put.ts"
import { Cursors } from "#gateway/blob-storage/cursors.ts"
import { worded } from "#gateway/blob-storage/fault.ts"
import { list } from "#gateway/blob-storage/list.ts"
import { answer } from "#gateway/json.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { type BlobId, StatResponse } from "#schemas/blob-storage/blob.ts"

const stat_answer = answer(StatResponse)

const stat = Effect.fnUntraced(function* (id: BlobId, scope?: BlobScope) {
  const store = yield* BlobStore
  const found = yield* store.stat(id, scope).pipe(
    Effect.map((meta) => ({ exists: true, meta })),
    Effect.catchTag("BlobNotFound", () => Effect.succeed({ exists: false })),
    Effect.mapError(worded),
  )
  return yield* stat_answer(found)
})

const remove = Effect.fnUntraced(function* (id: BlobId, scope?: BlobScope) {
  const store = yield* BlobStore
  const { caller, request_id, correlation_id } = yield* RequestContext
  const origin = { actor: caller.actor, request_id, correlation_id }
  return { deleted: yield* Effect.mapError(store.delete(id, origin, scope), worded) }
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
      .handle("list", ({ request, query }) => here(list(request, query)))
      .handleRaw("stat_batch", ({ request, query }) => here(statBatch(request, query.scope)))
      .handleRaw("get_batch", ({ request }) => here(getBatch(request)))
      .handle("get", ({ request, params }) => here(get(request, params.id)))
      .handle("get_stream", ({ request, params }) => here(getStream(request, params.id)))
      .handle("delete", ({ params, query }) => here(remove(params.id, query.scope)))
      .handle("stat", ({ params, query }) => here(stat(params.id, query.scope)))
  }),
)
