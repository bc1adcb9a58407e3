/**
 * Images of workers: checks that one can become a worker. Source: document 2 §9; DECISIONS, worker.
 */
import { Effect } from "effect"
import type { Images } from "#actors/share-protection/ports/compute.ts"
import { ValidationError } from "#schemas/share-protection/rejection.ts"

/** Requires the image in a field of the body to exist and to be made for workers. */
export const checkBootable = Effect.fnUntraced(function* (
  images: Images["Service"],
  field: string,
  name: string,
) {
  const image = yield* images.image(name)
  if (image?.properties.svc_worker_image === true) return
  const detail = `body.${field}: the image does not exist, or lacks the property svc_worker_image=1`
  return yield* new ValidationError({ detail })
})
