/** Images of workers: whether one can become a worker. Source: document 2 §9; DECISIONS, worker. */
import { Effect } from "effect"
import type { Images } from "#actors/share-protection/ports/compute.ts"
import { ValidationError } from "#schemas/share-protection/rejection.ts"

/** That the image which a field of the body names is there, and made for workers. */
export const bootable = Effect.fnUntraced(function* (
  images: Images["Service"],
  field: string,
  name: string,
) {
  const image = yield* images.image(name)
  if (image?.properties.svc_worker_image === true) return
  const detail = `body.${field}: no such image, or not one with the property svc_worker_image=1`
  return yield* new ValidationError({ detail })
})
