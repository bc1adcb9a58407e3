/** Decoded pixels in flight: a budget for each caller, and one for all. Source: decision 0186. */
import { Effect } from "effect"
import { Busy } from "#actors/plant-disease/predictor.ts"
import { holderOf, PixelsInFlight } from "#gateway/budget.ts"
import { RequestContext } from "#gateway/request-context.ts"
import { pixelsOf } from "#schemas/plant-disease/image-size.ts"

const over_budget = {
  caller: "Your images in progress have too many pixels. Wait for some of the responses.",
  all: "All images in progress have too many pixels. Try again later.",
} as const

/**
 * Counts an image's pixels against its caller's budget until `use` ends; fails with Busy if that is
 * exceeded.
 */
export const withPixels = Effect.fnUntraced(function* <A, E, R>(
  image: Uint8Array,
  use: (image: Uint8Array) => Effect.Effect<A, E, R>,
) {
  const { caller, address = "" } = yield* RequestContext
  const { budget, image_pixels_max } = yield* PixelsInFlight
  const holder = holderOf(caller, address)
  // An image that declares more pixels is rejected later; until then it counts as the largest
  // image.
  const pixels = Math.min(pixelsOf(image), image_pixels_max)
  const refusal = budget.refusal(holder, pixels)
  if (refusal !== undefined) {
    return yield* new Busy({ detail: over_budget[refusal], retry_after_seconds: 1 })
  }
  return yield* Effect.scoped(Effect.andThen(budget.hold(holder, pixels), use(image)))
})
