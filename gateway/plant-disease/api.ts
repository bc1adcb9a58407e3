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
import examples from "#gateway/plant-disease/examples.json" with { type: "json" }
import { inferenceGroup } from "#gateway/plant-disease/inference-api.ts"
import { form_bytes_max } from "#gateway/plant-disease/upload.ts"
import { Examples } from "#gateway/reference.ts"
import { ModelInfo } from "#schemas/plant-disease/model.ts"
import {
  anywhere,
  BadForm,
  ImageTooLarge,
  NoImage,
  of_image,
} from "#schemas/plant-disease/rejection.ts"
import { Prediction, Predictions } from "#schemas/plant-disease/response.ts"

/** Not validated by the schema: the handler does that, with the error texts of this service. */
const RawParameter = Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))

const described: Readonly<Record<string, object>> = {
  top_k: {
    description:
      "Number of most likely classes to return in `predictions`. A number above that of the " +
      "model's classes returns all. Without it, `predictions` is absent.",
    schema: { type: "integer", minimum: 1, maximum: 999_999 },
  },
  explain: {
    description:
      "`heatmap` adds `heatmap` and `auto_orient` to the response. With `Accept: image/png`, the " +
      "response is the heat map itself.",
    schema: { type: "string", enum: ["heatmap"] },
  },
}

/** Replaces the generated parameter in the OpenAPI document. */
const documented = (parameter: unknown) => {
  const name = Predicate.hasProperty(parameter, "name") ? String(parameter.name) : ""
  return { name, in: "query", required: false, ...described[name] }
}

const about = {
  group: "Plant disease prediction: the disease class of a leaf in a photograph.",
  predict: {
    summary: "Predict one image",
    description:
      "Returns the most likely class of one JPEG or PNG image of a leaf, sent as a file in the " +
      "form field `file`. The image has at most `plant.image_bytes_max` bytes (20 MiB) and " +
      "`plant.image_pixels_max` pixels (50 megapixels). Its content decides the type; a declared " +
      "type and a file name extension must match JPEG or PNG too. It is resized to the network's " +
      "input (224 by 224 by default). The network knows only its own classes: see " +
      "`GET /predict/model`. " +
      "The image is not stored. Requires no token.",
  },
  batch: {
    summary: "Predict several images",
    description:
      "Returns the most likely class of each image of a form, in the same order. Send 1 to " +
      "`plant.batch_images_max` files in the field `file`. An image that fails has an `error` in " +
      "the response and does not affect the others. Requires no token.",
  },
  model: {
    summary: "Get the model",
    description:
      "Returns the model in use with its classes and its hash. Every response to a prediction " +
      "has the hash in `X-Model-Sha256`. A new model requires a restart. Requires no token.",
  },
}

const OneImage = Schema.Struct({ file: Multipart.SingleFileSchema }).pipe(
  HttpApiSchema.asMultipart(),
)
/** The body of a form with images. Generation drops their types and descriptions. */
const imagesBody = (file: object) => ({
  required: true,
  content: {
    "multipart/form-data": {
      schema: {
        type: "object",
        properties: { file },
        required: ["file"],
        additionalProperties: false,
      },
      encoding: { file: { contentType: "image/jpeg, image/png" } },
    },
  },
})
const image = { type: "string", format: "binary" }
const one_image = { ...image, description: "A JPEG or PNG image." }
const images = { type: "array", items: image, minItems: 1, description: "JPEG or PNG images." }
const Images = Schema.Struct({
  file: Multipart.FilesSchema,
}).pipe(HttpApiSchema.asMultipart())
const Png = Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "image/png" }))

const group = HttpApiGroup.make("plants")
  .annotate(OpenApi.Description, about.group)
  .add(
    HttpApiEndpoint.post("predict", "/predict", {
      query: { top_k: RawParameter, explain: RawParameter },
      payload: OneImage,
      success: [Prediction, Png],
      error: [...anywhere, ...of_image],
    })
      .annotate(KeyNotNeeded, "it changes nothing.")
      .annotateMerge(OpenApi.annotations(about.predict))
      .annotate(OpenApi.Transform, (operation) => ({
        ...operation,
        // The library's own document: a list of parameters.
        parameters: (operation.parameters as ReadonlyArray<unknown>).map(documented),
        requestBody: imagesBody(one_image),
      }))
      .annotate(BodyLimit, ({ plant }) => plant.image_bytes_max + form_bytes_max),
    HttpApiEndpoint.post("batch", "/predict/batch", {
      payload: Images,
      success: Predictions,
      error: [...anywhere, BadForm, ImageTooLarge, NoImage],
    })
      .annotate(KeyNotNeeded, "it changes nothing.")
      .annotateMerge(OpenApi.annotations(about.batch))
      .annotate(OpenApi.Transform, (operation) => ({
        ...operation,
        requestBody: imagesBody(images),
      }))
      .annotate(BodyLimit, ({ plant }) => {
        return plant.batch_images_max * plant.image_bytes_max + form_bytes_max
      }),
    HttpApiEndpoint.get("model", "/predict/model", {
      success: ModelInfo,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.model)),
  )
  .annotateEndpoints(Needs, "public")

export const PlantDiseaseApi = HttpApi.make("plant-disease")
  .add(group, inferenceGroup)
  .annotate(Examples, examples)
