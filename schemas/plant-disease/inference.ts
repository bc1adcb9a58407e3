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

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1))
const Parameters = Schema.Record(Schema.String, Schema.Unknown)

export const ServerMetadata = Schema.Struct({
  name: Schema.String,
  version: Schema.String,
  extensions: described(Schema.Array(Schema.String), "None: no binary data, no shared memory."),
})

const TensorMetadata = Schema.Struct({
  name: Schema.String,
  datatype: Schema.String,
  shape: described(Schema.Array(Count), "-1 is any number of images."),
})

export const ModelMetadata = Schema.Struct({
  name: Schema.String,
  versions: described(Schema.Array(Schema.String), "One: the model's SHA-256."),
  platform: Schema.String,
  inputs: Schema.Array(TensorMetadata),
  outputs: Schema.Array(TensorMetadata),
})

export const ModelReady = Schema.Struct({ name: Schema.String, ready: Schema.Boolean })
export const ServerReady = Schema.Struct({ ready: Schema.Boolean })
export const ServerLive = Schema.Struct({ live: Schema.Boolean })

export const InferenceRequest = Schema.Struct({
  id: optional(Schema.String, "Comes back with the answer."),
  parameters: optional(Parameters, "Binary data is not known here; others are left alone."),
  inputs: Schema.Array(
    Schema.Struct({
      name: described(Schema.String, "`image`."),
      shape: described(
        Schema.Array(Schema.Int),
        "[n, 224, 224, 3] of FP32, as the network wants them; [n] of BYTES.",
      ),
      datatype: described(Schema.String, "FP32, or BYTES: whole JPEG or PNG files."),
      parameters: optional(Parameters, "As those of the request."),
      data: described(
        Schema.Array(Schema.Unknown),
        "Numbers, row by row, nested or not; or each file in base64.",
      ),
    }),
  ),
  outputs: optional(
    Schema.Array(
      Schema.Struct({ name: Schema.String, parameters: Schema.optionalKey(Parameters) }),
    ),
    "Which of `probabilities` and `class` are answered; both, if absent.",
  ),
})
export type InferenceRequest = typeof InferenceRequest.Type

const Tensor = <const Name extends string, const Type extends string, S extends Schema.Top>(
  name: Name,
  datatype: Type,
  data: S,
) =>
  Schema.Struct({
    name: Schema.Literal(name),
    datatype: Schema.Literal(datatype),
    shape: Schema.Array(Schema.Int),
    data: Schema.Array(data),
  })

export const InferenceResponse = Schema.Struct({
  model_name: Schema.String,
  model_version: Schema.String,
  id: Schema.optionalKey(Schema.String),
  outputs: Schema.Array(
    Schema.Union([
      Tensor("probabilities", "FP32", Schema.Finite),
      Tensor("class", "BYTES", Schema.String),
    ]),
  ),
})
export type InferenceResponse = typeof InferenceResponse.Type
