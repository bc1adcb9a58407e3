/**
 * Ownership of buckets: only one target, of any project, owns a bucket. Only that target uses the
 * repository, because the repository's lease is keyed by target.
 *
 * Source: document 2 §7 svc.conflict, duplicate identity; decision 0167.
 */
import type { DispatchView, KnownTarget } from "#actors/share-protection/dispatch/view.ts"
import type { TargetId } from "#schemas/share-protection/id.ts"

/**
 * A canonical key for the location of a bucket. It ignores the scheme; aliases of a server count as
 * different servers.
 */
export const placeOf = (endpoint: string, bucket: string) => {
  const { host, pathname } = new URL(endpoint)
  return `${host}${pathname.replace(/\/+$/, "")} ${bucket}`
}

function* othersOf({ targets }: DispatchView, target_id: TargetId): Generator<KnownTarget, void> {
  const own = targets.get(target_id)
  for (const [id, one] of targets) {
    if (id !== target_id && own !== undefined && one.places[0] === own.places[0]) yield one
  }
}

/** Whether another available target owns the bucket. */
export const isTaken = (view: DispatchView, target_id: TargetId) =>
  othersOf(view, target_id).some(({ status }) => status === "available")

/**
 * Buckets in which the enrollment of another target runs or may still run: two at once would each
 * find no repository and overwrite the other's.
 */
export const enrolledPlaces = ({ leases, targets }: DispatchView, except?: TargetId) => {
  const places = new Set<string>()
  for (const [target_id, { holds }] of leases) {
    const target = targets.get(target_id)
    if (target_id === except || holds.length === 0 || target?.status === "available") continue
    for (const place of target?.places ?? []) places.add(place)
  }
  return places
}

/**
 * Hrefs of the passwords of deleted targets of the same project and bucket, newest first. Deleting
 * a target leaves its repository in the bucket, so that a new target can open it (document 2 §4
 * rule 4; decision 0158).
 */
export const formerPasswords = (view: DispatchView, target_id: TargetId, max: number) => {
  const project_id = view.targets.get(target_id)?.project_id
  const refs = [...othersOf(view, target_id)].flatMap((one) =>
    // A target that was never enrolled has no password.
    one.project_id !== project_id || one.repository_password_ref === null
      ? []
      : [one.repository_password_ref],
  )
  return [...new Set(refs.reverse())].slice(0, max)
}
