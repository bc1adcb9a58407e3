/**
 * Plant disease prediction over HTTP; all endpoints are public.
 *
 * Source: document 3 §2 C and §4 C; decisions of document 3, plant errors; issue 7.
 */
import { Predicate, Schema } from "effect"
import { Multipart } from "effect/http"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { BodyLimit, KeyNotNeeded } from "#gateway/limits.ts"
import { inferenceGroup } from "#gateway/plant-disease/inference-api.ts"
import { form_bytes_max } from "#gateway/plant-disease/upload.ts"
import { ModelInfo } from "#schemas/plant-disease/model.ts"
import {
  anywhere,
  BadForm,
  ImageTooLarge,
  NoImage,
  of_image,
} from "#schemas/plant-disease/rejection.ts"
import { Prediction, Predictions } from "#schemas/plant-disease/response.ts"

/** Not validated here: the handler does that, with the error texts of this service. */
const RawParameter = Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))

const described: Readonly<Record<string, object>> = {
  top_k: {
    description: "Adds `predictions`: so many of the likeliest classes, at most all.",
    schema: { type: "integer", minimum: 1 },
  },
  explain: {
    description:
      "Adds `heatmap` and `auto_orient`; with `Accept: image/png` the image is the answer.",
    schema: { type: "string", enum: ["heatmap"] },
  },
}

/** Replaces the generated parameter in the OpenAPI document. */
const documented = (parameter: unknown) => {
  const name = Predicate.hasProperty(parameter, "name") ? String(parameter.name) : ""
  return { name, in: "query", required: false, ...described[name] }
}

const about =
  "What a leaf suffers from, by a network that knows some classes and no others: one image, one " +
  "class. Without a network of the operator's own it is a demo, which knows drawn leaves only."

const OneImage = Schema.Struct({ file: Multipart.SingleFileSchema }).pipe(
  HttpApiSchema.asMultipart(),
)
const Images = Schema.Struct({ file: Multipart.FilesSchema }).pipe(HttpApiSchema.asMultipart())
const Png = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "image/png" }))

const group = HttpApiGroup.make("plants")
  .annotate(OpenApi.Description, about)
  .add(
    HttpApiEndpoint.post("predict", "/predict", {
      query: { top_k: RawParameter, explain: RawParameter },
      payload: OneImage,
      success: [Prediction, Png],
      error: [...anywhere, ...of_image],
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Predict the class of one image of a leaf")
      .annotate(OpenApi.Transform, (operation) => ({
        ...operation,
        // The library's own document: a list of parameters.
        parameters: (operation.parameters as ReadonlyArray<unknown>).map(documented),
      }))
      .annotate(BodyLimit, ({ plant }) => plant.image_bytes_max + form_bytes_max),
    HttpApiEndpoint.post("batch", "/predict/batch", {
      payload: Images,
      success: Predictions,
      error: [...anywhere, BadForm, ImageTooLarge, NoImage],
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Predict the classes of several images, each failing alone")
      .annotate(BodyLimit, ({ plant }) => {
        return plant.batch_images_max * plant.image_bytes_max + form_bytes_max
      }),
    HttpApiEndpoint.get("model", "/predict/model", {
      success: ModelInfo,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read which model predicts, its classes and its hash"),
  )
  .annotateEndpoints(Needs, "public")

export const PlantDiseaseApi = HttpApi.make("plant-disease").add(group, inferenceGroup)
