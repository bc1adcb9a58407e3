/**
 * What plant disease prediction answers instead of a class: `{error}`.
 *
 * Source: document 3 §7 C; decisions of document 3, plant errors.
 */
import { Schema } from "effect"

const body = { error: Schema.String }

/** No image, more than one, or the form or the query is wrong. */
export class BadForm extends Schema.Error<BadForm>("PlantBadForm")(body, { httpApiStatus: 400 }) {}

/** No model of this name is served. */
export class NoModel extends Schema.Error<NoModel>("PlantNoModel")(body, { httpApiStatus: 404 }) {}

/** More bytes or pixels than are taken. */
export class ImageTooLarge extends Schema.Error<ImageTooLarge>("PlantImageTooLarge")(body, {
  httpApiStatus: 413,
}) {}

/** It is no JPEG or PNG, by its first bytes, its type or its name; or the body is no form. */
export class NoImage extends Schema.Error<NoImage>("PlantNoImage")(body, { httpApiStatus: 415 }) {}

/** It cannot be decoded, or not to its end. */
export class DamagedImage extends Schema.Error<DamagedImage>("PlantDamagedImage")(body, {
  httpApiStatus: 422,
}) {}

export class TooManyRequests extends Schema.Error<TooManyRequests>("PlantTooManyRequests")(body, {
  httpApiStatus: 429,
}) {}

/** The network failed, or something of ours. */
export class Internal extends Schema.Error<Internal>("PlantInternal")(body, {
  httpApiStatus: 500,
}) {}

/** Too many images wait already, or the service could not start; with Retry-After. */
export class Unavailable extends Schema.Error<Unavailable>("PlantUnavailable")(body, {
  httpApiStatus: 503,
}) {}

/** Nothing came of it within the deadline of a request. */
export class Late extends Schema.Error<Late>("PlantLate")(body, { httpApiStatus: 504 }) {}

/** What every endpoint may answer. */
export const anywhere = [TooManyRequests, Internal, Unavailable, Late] as const

/** What may be wrong with an image, or with the form that it comes in. */
export const of_image = [BadForm, ImageTooLarge, NoImage, DamagedImage] as const
