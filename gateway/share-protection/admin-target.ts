/** Targets for operators: all of them, and the upgrade of a repository's format. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { startFormatUpgrade } from "#actors/share-protection/requests.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { findExisting } from "#gateway/share-protection/checks/ownership.ts"
import { createOnce, send } from "#gateway/share-protection/commands.ts"
import { requireSingleImage } from "#gateway/share-protection/fleet.ts"
import { acceptedResponse } from "#gateway/share-protection/responses.ts"
import { targetPage, targetView } from "#gateway/share-protection/target.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { findTarget } from "#projections/share-protection/target.ts"
import { JobId, TargetId } from "#schemas/share-protection/id.ts"
import { Conflict, NotFound, RepositoryLocked } from "#schemas/share-protection/rejection.ts"
import { idText } from "#schemas/share-protection/views/page.ts"

const anyTarget = Effect.fnUntraced(function* (text: string) {
  const { db } = yield* ShareProtectionModel
  return yield* findExisting("target", idText(TargetId), text, (id) => findTarget(db, id))
})

/** Source: document 2 §4 repo-format-upgrade, §9. */
const upgrade = Effect.fnUntraced(function* (text: string) {
  const { id, project_id } = yield* anyTarget(text)
  const created = yield* createOnce("job", (job_id) => {
    const batch = startFormatUpgrade(id, project_id, JobId.make(job_id))
    return Effect.andThen(requireSingleImage, send(batch, [NotFound, Conflict, RepositoryLocked]))
  })
  return yield* acceptedResponse(
    "target",
    yield* targetView(yield* anyTarget(text)),
    created.id,
    created,
  )
})

export const adminTargetHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "admin-targets", (handlers) =>
    handlers.handleAll({
      list: ({ query }) => targetPage(query, { project_id: query.project_id }),
      upgrade: ({ params }) => upgrade(params.id),
    }),
  )
