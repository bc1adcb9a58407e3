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

const params = { name: Schema.String }

export const inferenceGroup = HttpApiGroup.make("inference")
  .annotate(OpenApi.Description, "The same network by the Open Inference Protocol, version 2.")
  .add(
    HttpApiEndpoint.get("server", "/v2", { success: ServerMetadata, error: anywhere }).annotate(
      OpenApi.Summary,
      "Read what the inference server is",
    ),
    HttpApiEndpoint.get("inference_live", "/v2/health/live", {
      success: ServerLive,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read whether the inference server lives"),
    HttpApiEndpoint.get("inference_ready", "/v2/health/ready", {
      success: ServerReady,
      error: anywhere,
    }).annotate(OpenApi.Summary, "Read whether the inference server is ready"),
    HttpApiEndpoint.get("metadata", "/v2/models/:name", {
      params,
      success: ModelMetadata,
      error: [...anywhere, NoModel],
    }).annotate(OpenApi.Summary, "Read a model's inputs and outputs"),
    HttpApiEndpoint.get("model_ready", "/v2/models/:name/ready", {
      params,
      success: ModelReady,
      error: [...anywhere, NoModel],
    }).annotate(OpenApi.Summary, "Read whether a model is ready"),
    HttpApiEndpoint.post("infer", "/v2/models/:name/infer", {
      params,
      payload: InferenceRequest,
      success: InferenceResponse,
      error: [...anywhere, ...of_image, NoModel],
    })
      .annotate(KeyNotNeeded, "It changes nothing.")
      .annotate(OpenApi.Summary, "Run a model on tensors or images")
      // Accepted so that requests with binary data get a specific error instead of one about their
      // type.
      .annotate(Accepts, ["application/json", "application/octet-stream"])
      .annotate(BodyLimit, () => inference_bytes_max),
  )
  .annotateEndpoints(Needs, "public")
