/**
 * Former targets: those of the same project that were deleted, whose repository is still in the
 * bucket. Deleting a target destroys nothing there, so a new one of the bucket opens it by their
 * password.
 *
 * Source: document 2 §4 rule 4; decision 0158.
 */
import type { DispatchView, KnownTarget } from "#actors/share-protection/dispatch-view.ts"
import type { TargetId } from "#schemas/share-protection/id.ts"
import { former_passwords_max } from "#schemas/share-protection/job-order.ts"

const isBeside = (one: KnownTarget, other: KnownTarget) =>
  one.project_id === other.project_id &&
  one.endpoint === other.endpoint &&
  one.bucket === other.bucket

/**
 * Hrefs of the passwords that may open what the target's bucket has, the newest first. None while
 * another target has the bucket, or is about to: a repository has one lease, which is a target's.
 */
export const formerPasswords = ({ targets }: DispatchView, target_id: TargetId) => {
  const own = targets.get(target_id)
  if (own === undefined) return []
  const beside = [...targets].filter(([id, one]) => id !== target_id && isBeside(one, own))
  const is_taken = beside.some(([, { status }]) => status === "available" || status === "pending")
  if (is_taken) return []
  // What else is beside it was never enrolled, and has no password.
  const refs = beside.flatMap(([, { repository_password_ref: ref }]) => (ref === null ? [] : [ref]))
  return [...new Set(refs.reverse())].slice(0, former_passwords_max)
}
