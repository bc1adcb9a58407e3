/**
 * Whose a bucket is: one target's, of whatever project. A repository is made, read and written by
 * one target alone, since its lease is that target's.
 *
 * Source: document 2 §7 svc.conflict, duplicate identity; decision 0167.
 */
import type { DispatchView, KnownTarget } from "#actors/share-protection/dispatch/view.ts"
import type { TargetId } from "#schemas/share-protection/id.ts"

/**
 * Where a bucket is, whatever its endpoint's spelling. A server is one for both schemes, and one
 * of two names is not known to be one.
 */
export const placeOf = (endpoint: string, bucket: string) => {
  const { host, pathname } = new URL(endpoint)
  return `${host}${pathname.replace(/\/+$/, "")} ${bucket}`
}

function* besides({ targets }: DispatchView, target_id: TargetId): Generator<KnownTarget, void> {
  const own = targets.get(target_id)
  for (const [id, one] of targets) {
    if (id !== target_id && own !== undefined && one.places[0] === own.places[0]) yield one
  }
}

/** Whether another target has the bucket. */
export const isTaken = (view: DispatchView, target_id: TargetId) =>
  besides(view, target_id).some(({ status }) => status === "available")

/**
 * Buckets in which an enrollment of another target runs, or may still run: two at once find no
 * repository, and each makes one over the other's.
 */
export const enrolledPlaces = ({ leases, targets }: DispatchView, but?: TargetId) => {
  const places = new Set<string>()
  for (const [target_id, { holds }] of leases) {
    const target = targets.get(target_id)
    if (target_id === but || holds.length === 0 || target?.status === "available") continue
    for (const place of target?.places ?? []) places.add(place)
  }
  return places
}

/**
 * Hrefs of the passwords that may open what the target's bucket has, the newest first: those of
 * targets of the same project that were deleted. Deleting a target destroys nothing in its bucket,
 * so a new one of the bucket opens it (document 2 §4 rule 4; decision 0158).
 */
export const formerPasswords = (view: DispatchView, target_id: TargetId, max: number) => {
  const project_id = view.targets.get(target_id)?.project_id
  const refs = [...besides(view, target_id)].flatMap((one) =>
    // What was never enrolled has no password.
    one.project_id !== project_id || one.repository_password_ref === null
      ? []
      : [one.repository_password_ref],
  )
  return [...new Set(refs.reverse())].slice(0, max)
}
