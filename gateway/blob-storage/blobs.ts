/**
 * BlobService's endpoints for many blobs; those for a single blob are direct routes.
 *
 * Source: document 1 §4 BlobService, rule 5; DECISIONS, document 1, list.
 */
import { Context, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Blobs } from "#actors/blob-storage/ports/engine.ts"
import { BlobListApi } from "#gateway/blob-storage/apis/blobs.ts"
import { getBatch, statBatch } from "#gateway/blob-storage/batch.ts"
import { Cursors } from "#gateway/blob-storage/cursors.ts"
import { list } from "#gateway/blob-storage/list.ts"

/** The handlers of the list and batch endpoints. */
export const blobs = HttpApiBuilder.group(
  BlobListApi,
  "blobs",
  Effect.fnUntraced(function* (handlers) {
    const services = Context.make(Blobs, yield* Blobs).pipe(Context.add(Cursors, yield* Cursors))
    const here = Effect.provideContext(services)
    return handlers
      .handle("list", ({ request, query }) => here(list(request, query)))
      .handleRaw("stat_batch", ({ request, query }) => here(statBatch(request, query.scope)))
      .handleRaw("get_batch", ({ request }) => here(getBatch(request)))
  }),
)
