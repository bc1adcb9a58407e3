/** Access of callers to published events. Source: DECISIONS "published events". */
import { Effect } from "effect"
import type { Caller } from "#gateway/caller.ts"
import type { CloudEvent } from "#schemas/cloud-event.ts"
import { Forbidden } from "#schemas/system/rejection.ts"

/** Whether a caller may see an event. */
export const visibleTo = ({
  roles,
  scopes,
  project_id,
}: Pick<Caller, "roles" | "scopes" | "project_id">): Effect.Effect<
  (event: CloudEvent) => boolean,
  Forbidden
> => {
  if (roles.has("admin")) return Effect.succeed(() => true)
  const blobs = scopes.has("blobs:read")
  if (!blobs && project_id === undefined) return Effect.fail(forbidden)
  return Effect.succeed(
    ({ source, projectid }) =>
      (blobs && source.startsWith("/almanac/blob-storage/")) ||
      (projectid !== undefined && projectid === project_id),
  )
}

const forbidden = new Forbidden({
  detail: "The token is not scoped to a project and lacks the scope blobs:read.",
})
