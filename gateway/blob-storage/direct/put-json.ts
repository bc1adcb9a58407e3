/**
 * Puts of one JSON message. Its base64 is decoded as it arrives, and large blobs are streamed to
 * the store.
 *
 * Source: document 1 §4 BlobService; DECISIONS, document 1, `data`, limits not shown.
 */
import { Result, Schema } from "effect"
import type { BlobUpload } from "#actors/blob-storage/ports/engine.ts"
import { decodedLength } from "#gateway/blob-storage/body/base64.ts"
import type { DataSink, FieldsRead } from "#gateway/blob-storage/body/fields.ts"
import { messageFields } from "#gateway/blob-storage/body/message-fields.ts"
import { messageScanner } from "#gateway/blob-storage/body/messages.ts"
import {
  admitPolicy,
  answerPut,
  type DirectPuts,
  finishUpload,
  gathered_bytes_max,
  orderOf,
  type PutFields,
  unspecified,
} from "#gateway/blob-storage/direct/put.ts"
import { readBody } from "#gateway/blob-storage/direct/request.ts"
import { reject, rejectCause } from "#gateway/blob-storage/direct/response.ts"
import type { DirectHeaders, Exchange } from "#gateway/direct.ts"
import { BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { InvalidArgument, TooLarge } from "#schemas/blob-storage/rejection.ts"

const bodyTooLarge = (bytes_max: number) =>
  new TooLarge({ detail: `The request body is larger than ${bytes_max} bytes.` })

const no_object = new InvalidArgument({ detail: "body: Expected a JSON object." })
const two_objects = new InvalidArgument({ detail: "body: Expected one JSON object." })

/** The framing of a body that is one message. */
const body_framing = {
  message_bytes_max: Number.POSITIVE_INFINITY,
  is_lined: false,
  is_array_allowed: false,
}

const putFields = messageFields(
  Schema.Struct({
    data: Schema.String,
    policy: Schema.optionalKey(ReplicationPolicy),
    labels: Schema.optionalKey(BlobLabels),
  }),
)

/** A message with validated fields, and the last of its bytes. */
interface PutMessage {
  readonly fields: PutFields
  readonly data: ReadonlyArray<Uint8Array>
}

const no_labels: BlobLabels = {}

const isPolicy = Schema.is(ReplicationPolicy)
const isLabels = Schema.is(BlobLabels)

/** A fast path for the fields of nearly all messages; undefined if the schema must decide. */
const fastFields = ({ json, data }: FieldsRead): PutMessage | undefined => {
  let message: unknown
  try {
    message = JSON.parse(json)
  } catch {
    return undefined
  }
  if (data === undefined || typeof message !== "object" || message === null) return undefined
  // Missing fields are undefined.
  const { data: rest, policy, labels } = message as Readonly<Record<string, unknown>>
  if (rest !== "") return undefined
  if (policy !== undefined && !isPolicy(policy)) return undefined
  if (labels !== undefined && !isLabels(labels)) return undefined
  return { fields: { policy: policy ?? unspecified, labels: labels ?? no_labels }, data }
}

/** The fields of a message. Throws InvalidArgument. */
const fieldsOf = (read: FieldsRead): PutMessage => {
  const quick = fastFields(read)
  if (quick !== undefined) return quick
  const { fields, data } = putFields(read, "Payload")
  const { policy = unspecified, labels = no_labels } = fields
  return { fields: { policy, labels }, data }
}

/** Maximum size of the blob in a message of known length: as if the message were only base64. */
const bytesMax = ({ "content-length": length, "transfer-encoding": encoding }: DirectHeaders) =>
  length === undefined || encoding !== undefined ? undefined : decodedLength(Number(length))

/** Collects the bytes of a message in memory while they are few, then sends them to an upload. */
const makeIntake = ({ engine }: DirectPuts, exchange: Exchange) => {
  const order = { ...orderOf(exchange, { policy: unspecified, labels: no_labels }) }
  let buffered: Array<Uint8Array> = []
  let buffered_bytes = 0
  let upload: BlobUpload | undefined
  let pressure: Promise<unknown> | undefined

  const write = (bytes: Uint8Array) => {
    const written = upload?.write(bytes)
    if (written === undefined) return
    // If this promise is not awaited, `finish` still rejects.
    written.catch(() => undefined)
    pressure = pressure ? Promise.all([pressure, written]) : written
  }
  const restart = () => {
    upload?.abort().catch(exchange.fail)
    upload = undefined
    buffered = []
    buffered_bytes = 0
  }
  const sink: DataSink = {
    take: (bytes) => {
      if (upload !== undefined) return write(bytes)
      buffered.push(bytes)
      buffered_bytes += bytes.length
      if (buffered_bytes < gathered_bytes_max) return
      upload = engine.upload(order, bytesMax(exchange.headers))
      for (const part of buffered.splice(0)) write(part)
    },
    restart,
  }
  return {
    sink,
    drop: restart,
    /** Resolves when the upload accepts more bytes. */
    pressure: () => {
      const waiting = pressure
      pressure = undefined
      return waiting
    },
    /** Stores all bytes, including these last ones, under the message's fields. */
    store: ({ fields, data }: PutMessage) => {
      Object.assign(order, fields)
      const begun = upload
      upload = undefined
      return begun === undefined
        ? engine.put(order, [...buffered, ...data], exchange.now())
        : finishUpload(begun, data, exchange.now())
    },
  }
}

/** PUT of one JSON message. */
export const putJson = (puts: DirectPuts, exchange: Exchange) => {
  const intake = makeIntake(puts, exchange)
  const scanner = messageScanner(body_framing, intake.sink)
  let body_bytes = 0
  let message: PutMessage | undefined

  const meet = (read: FieldsRead) => {
    if (message !== undefined) throw two_objects
    message = fieldsOf(read)
    // The name of `data` contains escapes, so it was not decoded as it arrived.
    if (message.data !== read.data) intake.sink.restart()
  }
  readBody(exchange, {
    take: (bytes) => {
      body_bytes += bytes.length
      if (body_bytes > exchange.body_bytes_max) throw bodyTooLarge(exchange.body_bytes_max)
      const scanned = scanner.feed(bytes)
      if (Result.isFailure(scanned)) throw scanned.failure
      scanned.success.forEach(meet)
      return intake.pressure()
    },
    end: () => {
      const whole = message
      if (whole === undefined) return reject(exchange, no_object)
      admitPolicy(puts, exchange, whole.fields.policy, () =>
        answerPut(puts, exchange, intake.store(whole)),
      )
    },
    drop: intake.drop,
    fail: (cause) => rejectCause(exchange, cause),
  })
}
