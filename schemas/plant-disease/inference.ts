/**
 * The part of the Open Inference Protocol, version 2, that one image network needs.
 *
 * Source: issue 7; KServe, "Open Inference Protocol", HTTP/REST.
 */
import { Schema } from "effect"

const optional = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema).annotateKey({ description })
const described = <S extends Schema.Top>(schema: S, description: string) =>
  schema.annotateKey({ description })

/** Images, height, width and colours. */
const dimensions_max = 4

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1))
const Parameters = Schema.Record(Schema.String, Schema.Unknown)

export const ServerMetadata = Schema.Struct({
  name: described(Schema.String, "Name of the server: `almanac`."),
  version: described(Schema.String, "Version of the server's implementation of the protocol."),
  extensions: described(Schema.Array(Schema.String), "Supported extensions: none."),
}).annotate({ identifier: "ServerMetadata", description: "The inference server." })

const TensorMetadata = Schema.Struct({
  name: described(Schema.String, "Name of the tensor."),
  datatype: described(Schema.String, "Data type of the tensor: FP32 or BYTES."),
  shape: described(Schema.Array(Count), "Dimensions. -1 is any number of images."),
}).annotate({ identifier: "TensorMetadata" })

export const ModelMetadata = Schema.Struct({
  name: described(Schema.String, "Name of the model."),
  versions: described(Schema.Array(Schema.String), "One version: the SHA-256 of the model's file."),
  platform: described(Schema.String, "The runtime: `onnx_onnxv1`."),
  inputs: described(Schema.Array(TensorMetadata), "The input: `image`."),
  outputs: described(Schema.Array(TensorMetadata), "The outputs: `probabilities` and `class`."),
}).annotate({ identifier: "ModelMetadata", description: "The inputs and outputs of a model." })

export const ModelReady = Schema.Struct({
  name: described(Schema.String, "Name of the model."),
  ready: described(Schema.Boolean, "Whether the model accepts requests."),
}).annotate({ identifier: "ModelReady", description: "The state of a model." })

export const ServerReady = Schema.Struct({
  ready: described(Schema.Boolean, "Whether the server accepts requests."),
}).annotate({ identifier: "ServerReady", description: "The readiness of the server." })

export const ServerLive = Schema.Struct({
  live: described(Schema.Boolean, "Whether the server is running."),
}).annotate({ identifier: "ServerLive", description: "The liveness of the server." })

/** A text that the handler validates, with its own error text. */
const oneOf = (...values: ReadonlyArray<string>) =>
  Schema.String.annotate({ documentedAs: { type: "string", enum: values } })

/** A constraint that the handler checks, with an error text of its own. */
const documentedSize = (minItems: number, maxItems?: number) =>
  Schema.makeFilter<ReadonlyArray<unknown>>(() => true, {
    toJsonSchema: () => ({ minItems, ...(maxItems !== undefined && { maxItems }) }),
  })

const Dimension = Schema.Int.annotate({ documentedAs: { type: "integer", minimum: 1 } })

const Input = Schema.Struct({
  name: described(oneOf("image"), "Name of the input: `image`."),
  shape: described(
    Schema.Array(Dimension).check(documentedSize(1, dimensions_max)),
    "[n, 224, 224, 3] for FP32, [n] for BYTES. n is 1 to `plant.batch_images_max`.",
  ),
  datatype: described(
    oneOf("FP32", "BYTES"),
    "FP32: preprocessed tensors. BYTES: JPEG or PNG files.",
  ),
  parameters: optional(
    Parameters,
    "Parameters of the input, with the same rules as those of the request.",
  ),
  data: described(
    Schema.Array(Schema.Unknown).check(documentedSize(1)),
    "FP32: the numbers in row-major order, flat or nested. BYTES: each file in base64.",
  ),
})

const Output = Schema.Struct({
  name: described(oneOf("probabilities", "class"), "Name of the output."),
  parameters: optional(
    Parameters,
    "Parameters of the output, with the same rules as those of the request.",
  ),
})

export const InferenceRequest = Schema.Struct({
  id: optional(Schema.String, "An id of your choice, which the response repeats."),
  parameters: optional(
    Parameters,
    "Parameters of the protocol. Those for binary data are rejected, others are ignored.",
  ),
  inputs: described(
    Schema.Array(Input).check(documentedSize(1, 1)),
    "The input. There must be exactly one.",
  ),
  outputs: optional(Schema.Array(Output), "The outputs to return. Both by default."),
}).annotate({ identifier: "InferenceRequest", description: "Images or tensors to classify." })
export type InferenceRequest = typeof InferenceRequest.Type

const Tensor = <const Name extends string, const Type extends string, S extends Schema.Top>(
  name: Name,
  datatype: Type,
  data: S,
) =>
  Schema.Struct({
    name: described(Schema.Literal(name), "Name of the output."),
    datatype: described(Schema.Literal(datatype), "Data type of the output."),
    shape: described(Schema.Array(Schema.Int), "Dimensions: images, then classes if FP32."),
    data: described(Schema.Array(data), "The values in row-major order."),
  })

export const InferenceResponse = Schema.Struct({
  model_name: described(Schema.String, "Name of the model."),
  model_version: described(Schema.String, "SHA-256 of the model's file."),
  id: optional(Schema.String, "The id of the request, if it has one."),
  outputs: described(
    Schema.Array(
      Schema.Union([
        Tensor("probabilities", "FP32", Schema.Finite),
        Tensor("class", "BYTES", Schema.String),
      ]),
    ),
    "The requested outputs.",
  ),
}).annotate({ identifier: "InferenceResponse", description: "The classes of the images." })
export type InferenceResponse = typeof InferenceResponse.Type
