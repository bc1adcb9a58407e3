/**
 * Plant disease prediction by the Open Inference Protocol, version 2.
 *
 * Source: issue 7; KServe, "Open Inference Protocol", HTTP/REST.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { Accepts, BodyLimit, KeyNotNeeded } from "#gateway/limits.ts"
import {
  InferenceRequest,
  InferenceResponse,
  ModelMetadata,
  ModelReady,
  ServerLive,
  ServerMetadata,
  ServerReady,
} from "#schemas/plant-disease/inference.ts"
import { anywhere, NoModel, of_image } from "#schemas/plant-disease/rejection.ts"

/**
 * Maximum size of an inference request, in bytes: two tensors with all their digits. Numbers in
 * JSON are parsed at once, which blocks the process for 50 ms at this size. Larger images must use
 * `/predict`.
 */
const inference_bytes_max = 4 * 2 ** 20

const params = {
  name: Schema.String.annotate({
    description: "Name of the model, from `GET /predict/model`.",
    documentedAs: { type: "string", minLength: 1, maxLength: 255 },
  }),
}

const about = {
  group: "Inference: plant disease prediction by the Open Inference Protocol, version 2 (KServe).",
  server: {
    summary: "Get server metadata",
    description: "Returns the name and version of the inference server. Requires no token.",
  },
  live: {
    summary: "Get the server's liveness",
    description: "Returns 200 while the inference server runs. Requires no token.",
  },
  ready: {
    summary: "Get the server's readiness",
    description: "Returns 200 while the inference server accepts requests. Requires no token.",
  },
  metadata: {
    summary: "Get model metadata",
    description: "Returns the inputs and outputs of the model. Requires no token.",
  },
  model_ready: {
    summary: "Get a model's readiness",
    description: "Returns 200 if the model is loaded. Requires no token.",
  },
  infer: {
    summary: "Run inference",
    description:
      "Classifies 1 to `plant.batch_images_max` images. Send either whole JPEG or PNG files " +
      "(`BYTES`, in base64), which are preprocessed as by `POST /predict`, or tensors (`FP32`), " +
      "which reach the network unchanged. The body is JSON of at most 4 MiB; the protocol's " +
      "binary data extension is not supported. An image that fails makes the whole request " +
      "fail. Requires no token.",
  },
}

export const inferenceGroup = HttpApiGroup.make("inference")
  .annotate(OpenApi.Description, about.group)
  .add(
    HttpApiEndpoint.get("server", "/v2", {
      success: ServerMetadata,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.server)),
    HttpApiEndpoint.get("inference_live", "/v2/health/live", {
      success: ServerLive,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.live)),
    HttpApiEndpoint.get("inference_ready", "/v2/health/ready", {
      success: ServerReady,
      error: anywhere,
    }).annotateMerge(OpenApi.annotations(about.ready)),
    HttpApiEndpoint.get("metadata", "/v2/models/:name", {
      params,
      success: ModelMetadata,
      error: [...anywhere, NoModel],
    }).annotateMerge(OpenApi.annotations(about.metadata)),
    HttpApiEndpoint.get("model_ready", "/v2/models/:name/ready", {
      params,
      success: ModelReady,
      error: [...anywhere, NoModel],
    }).annotateMerge(OpenApi.annotations(about.model_ready)),
    HttpApiEndpoint.post("infer", "/v2/models/:name/infer", {
      params,
      payload: InferenceRequest,
      success: InferenceResponse,
      error: [...anywhere, ...of_image, NoModel],
    })
      .annotate(KeyNotNeeded, "it changes nothing.")
      .annotateMerge(OpenApi.annotations(about.infer))
      // Accepted so that requests with binary data get a specific error instead of one about their
      // type.
      .annotate(Accepts, ["application/json", "application/octet-stream"])
      .annotate(BodyLimit, () => inference_bytes_max),
  )
  .annotateEndpoints(Needs, "public")
