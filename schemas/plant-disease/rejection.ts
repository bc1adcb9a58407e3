/**
 * The errors of plant disease prediction, with the envelope `{error}`.
 *
 * Source: document 3 §7 C; decisions of document 3, plant errors.
 */
import { Schema } from "effect"

const body = { error: Schema.String }

/** No image, too many images, or an invalid form or query. */
export class BadForm extends Schema.Error<BadForm>("PlantBadForm")(body, { httpApiStatus: 400 }) {}

/** There is no model with this name. */
export class NoModel extends Schema.Error<NoModel>("PlantNoModel")(body, { httpApiStatus: 404 }) {}

/** The image exceeds the limit of bytes or pixels. */
export class ImageTooLarge extends Schema.Error<ImageTooLarge>("PlantImageTooLarge")(body, {
  httpApiStatus: 413,
}) {}

/** Not a JPEG or PNG by its first bytes, type or name; or the body is not a form. */
export class NoImage extends Schema.Error<NoImage>("PlantNoImage")(body, { httpApiStatus: 415 }) {}

/** The image is damaged or truncated. */
export class DamagedImage extends Schema.Error<DamagedImage>("PlantDamagedImage")(body, {
  httpApiStatus: 422,
}) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("PlantTooManyRequests")(body, {
  httpApiStatus: 429,
}) {}

/** The network or the server failed. */
export class Internal extends Schema.Error<Internal>("PlantInternal")(body, {
  httpApiStatus: 500,
}) {}

/** The queue is full or the service could not start; with Retry-After. */
export class Unavailable extends Schema.Error<Unavailable>("PlantUnavailable")(body, {
  httpApiStatus: 503,
}) {}

/** The request exceeded its deadline. */
export class Late extends Schema.Error<Late>("PlantLate")(body, { httpApiStatus: 504 }) {}

/** Errors of every endpoint. */
export const anywhere = [TooManyRequests, Internal, Unavailable, Late] as const

/** Errors of an image or its form. */
export const of_image = [BadForm, ImageTooLarge, NoImage, DamagedImage] as const
