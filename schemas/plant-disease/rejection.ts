/**
 * The errors of plant disease prediction, with the envelope `{error}`.
 *
 * Source: document 3 §7 C; decisions of document 3, plant errors.
 */
import { Schema } from "effect"

const body = { error: Schema.String.annotateKey({ description: "Description of the error." }) }

/** No image, too many images, or an invalid form or query. */
export class BadForm extends Schema.Error<BadForm>("PlantBadForm")(body, {
  httpApiStatus: 400,
  description:
    "The form or the request body is malformed, has no image or too many, or a parameter is " +
    "invalid.",
}) {}

/** There is no model with this name. */
export class NoModel extends Schema.Error<NoModel>("PlantNoModel")(body, {
  httpApiStatus: 404,
  description: "No model has this name.",
}) {}

/** The image exceeds the limit of bytes or pixels. */
export class ImageTooLarge extends Schema.Error<ImageTooLarge>("PlantImageTooLarge")(body, {
  httpApiStatus: 413,
  description:
    "An image has more than `plant.image_bytes_max` bytes or `plant.image_pixels_max` pixels, " +
    "or the body is too large.",
}) {}

/** Not a JPEG or PNG by its first bytes, type or name; or the body is not a form. */
export class NoImage extends Schema.Error<NoImage>("PlantNoImage")(body, {
  httpApiStatus: 415,
  description:
    "The file's first bytes, type or name are not those of a JPEG or PNG, or the body is not a " +
    "form.",
}) {}

/** The image is damaged or truncated. */
export class DamagedImage extends Schema.Error<DamagedImage>("PlantDamagedImage")(body, {
  httpApiStatus: 422,
  description: "The image is damaged or truncated and cannot be decoded.",
}) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("PlantTooManyRequests")(body, {
  httpApiStatus: 429,
  description:
    "The caller has exceeded the rate limit. Wait for the number of seconds in `Retry-After`.",
}) {}

/** The network or the server failed. */
export class Internal extends Schema.Error<Internal>("PlantInternal")(body, {
  httpApiStatus: 500,
  description:
    "The network failed on the image, or the server failed unexpectedly. The log has the cause.",
}) {}

/** The queue is full or the service could not start; with Retry-After. */
export class Unavailable extends Schema.Error<Unavailable>("PlantUnavailable")(body, {
  httpApiStatus: 503,
  description:
    "The queue of images is full, or the service could not start. Wait for the number of seconds " +
    "in `Retry-After`.",
}) {}

/** The request exceeded its deadline. */
export class Late extends Schema.Error<Late>("PlantLate")(body, {
  httpApiStatus: 504,
  description: "The request took longer than its deadline.",
}) {}

/** Errors of every endpoint. */
export const anywhere = [TooManyRequests, Internal, Unavailable, Late] as const

/** Errors of an image or its form. */
export const of_image = [BadForm, ImageTooLarge, NoImage, DamagedImage] as const
