/** Handlers of workers. Source: document 2 §3 Worker, §4; DECISIONS, worker. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { address } from "#actors/commands.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { findExisting } from "#gateway/share-protection/checks/ownership.ts"
import { send } from "#gateway/share-protection/commands.ts"
import { type PageQuery, pageOf } from "#gateway/share-protection/page.ts"
import { jsonResponse, pageResponse } from "#gateway/share-protection/responses.ts"
import { workerView } from "#gateway/share-protection/view.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findWorker, listWorkers, type WorkerFilter } from "#projections/share-protection/worker.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { Conflict, NotFound } from "#schemas/share-protection/rejection.ts"
import { DrainWorker, RetireWorker } from "#schemas/share-protection/worker.ts"

const list = Effect.fnUntraced(function* (query: PageQuery & WorkerFilter) {
  const { db } = yield* ShareProtectionModel
  const paging = yield* pageOf(query)
  const { image_version, state } = query
  const listed = yield* listWorkers(db, { image_version, state }, paging)
  return yield* pageResponse("workers", listed, paging.limit, workerView)
})

const anyWorker = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  return yield* findExisting("worker", WorkerId, text, (id) => findWorker(db, id))
})

const sendToWorker = Effect.fnUntraced(function* (
  text: string,
  command: typeof DrainWorker.Type | typeof RetireWorker.Type,
) {
  const { id } = yield* anyWorker(text)
  const position = yield* send([address(Worker, id, command)], [NotFound, Conflict])
  return jsonResponse(yield* workerView(yield* anyWorker(id)), { status: 202, position })
})

export const workerHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "workers", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => list(query),
      drain: ({ params }) => sendToWorker(params.id, DrainWorker.make({})),
      retire: ({ params }) => sendToWorker(params.id, RetireWorker.make({})),
    }),
  )
