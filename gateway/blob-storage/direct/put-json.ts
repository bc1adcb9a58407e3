/**
 * Hot puts of one JSON message: its base64 is decoded as it comes, and what is large of it is on
 * its way to the store before the message has ended.
 *
 * Source: document 1 §4 BlobService; DECISIONS, document 1, `data`, limits not shown.
 */
import { Effect, Result, Schema } from "effect"
import type { BlobUpload } from "#actors/blob-storage/blobs/engine.ts"
import {
  body_framing,
  no_object,
  putFields,
  two_objects,
  unspecified,
} from "#gateway/blob-storage/blob-put.ts"
import { decodedLength } from "#gateway/blob-storage/body/base64.ts"
import type { DataSink, FieldsRead } from "#gateway/blob-storage/body/fields.ts"
import { bodyTooLarge } from "#gateway/blob-storage/body/message-fields.ts"
import { messageScanner } from "#gateway/blob-storage/body/messages.ts"
import { readBody } from "#gateway/blob-storage/body/reading.ts"
import {
  admitPolicy,
  answerPut,
  finishUpload,
  gathered_bytes_max,
  type HotPuts,
  orderOf,
  type PutSaid,
} from "#gateway/blob-storage/direct/put.ts"
import { reject, rejectFault } from "#gateway/blob-storage/direct/refusal.ts"
import type { HotHeaders, HotVisit } from "#gateway/direct.ts"
import { BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

/** A message whose fields were checked, and the last of the bytes that it holds. */
interface PutMessage {
  readonly said: PutSaid
  readonly data: ReadonlyArray<Uint8Array>
}

const isPolicy = Schema.is(ReplicationPolicy)
const isLabels = Schema.is(BlobLabels)

const no_labels: BlobLabels = {}

/** The fields of a message as nearly all are; undefined where the schema has to look. */
const quickFields = ({ json, data }: FieldsRead): PutMessage | undefined => {
  let message: unknown
  try {
    message = JSON.parse(json)
  } catch {
    return undefined
  }
  if (data === undefined || typeof message !== "object" || message === null) return undefined
  // Whatever it is, it may be asked for fields.
  const { data: rest, policy, labels } = message as Readonly<Record<string, unknown>>
  if (rest !== "") return undefined
  if (policy !== undefined && !isPolicy(policy)) return undefined
  if (labels !== undefined && !isLabels(labels)) return undefined
  return { said: { policy: policy ?? unspecified, labels: labels ?? no_labels }, data }
}

/** The fields as the plain route reads them, or its refusal. */
const fieldsOf = (visit: HotVisit, read: FieldsRead): PutMessage | undefined => {
  const quick = quickFields(read)
  if (quick !== undefined) return quick
  const result = Effect.runSync(Effect.result(putFields(read, "Payload")))
  if (Result.isFailure(result)) {
    reject(visit, result.failure)
    return undefined
  }
  const { fields, data } = result.success
  return {
    said: { policy: fields.policy ?? unspecified, labels: fields.labels ?? no_labels },
    data,
  }
}

/** The most bytes that a message of known length may hold: all of it base64. */
const bytesMax = ({ "content-length": length, "transfer-encoding": encoding }: HotHeaders) =>
  length === undefined || encoding !== undefined ? undefined : decodedLength(Number(length))

/** The bytes of a message on their way: held while they are few, then to an upload. */
const makeIntake = ({ engine }: HotPuts, visit: HotVisit) => {
  const order = { ...orderOf(visit, { policy: unspecified, labels: no_labels }) }
  let held: Array<Uint8Array> = []
  let held_bytes = 0
  let upload: BlobUpload | undefined
  let pressure: Promise<unknown> | undefined

  const write = (bytes: Uint8Array) => {
    const taken = upload?.write(bytes)
    if (taken === undefined) return
    // The finish tells of it too, should nobody wait for this one.
    taken.catch(() => undefined)
    pressure = pressure ? Promise.all([pressure, taken]) : taken
  }
  const restart = () => {
    upload?.abort().catch(visit.fail)
    upload = undefined
    held = []
    held_bytes = 0
  }
  const sink: DataSink = {
    take: (bytes) => {
      if (upload !== undefined) return write(bytes)
      held.push(bytes)
      held_bytes += bytes.length
      if (held_bytes < gathered_bytes_max) return
      upload = engine.upload(order, bytesMax(visit.headers))
      for (const part of held.splice(0)) write(part)
    },
    restart,
  }
  return {
    sink,
    drop: restart,
    /** What has to be waited for before more is taken. */
    pressure: () => {
      const waiting = pressure
      pressure = undefined
      return waiting
    },
    /** Stores what was taken and these last bytes, as the message says. */
    store: ({ said, data }: PutMessage) => {
      Object.assign(order, said)
      const begun = upload
      upload = undefined
      return begun === undefined
        ? engine.put(order, [...held, ...data], visit.now())
        : finishUpload(begun, data, visit.now())
    },
  }
}

/** PUT of one JSON message. */
export const putJson = (puts: HotPuts, visit: HotVisit) => {
  const intake = makeIntake(puts, visit)
  const scanner = messageScanner(body_framing, intake.sink)
  let body_bytes = 0
  let message: PutMessage | undefined

  const meet = (read: FieldsRead) => {
    if (message !== undefined) return reject(visit, two_objects)
    message = fieldsOf(visit, read)
    // The bytes are in another field than the one that was decoded on the way.
    if (message !== undefined && message.data !== read.data) intake.sink.restart()
  }
  readBody(visit, {
    take: (bytes) => {
      body_bytes += bytes.length
      if (body_bytes > visit.body_bytes_max) reject(visit, bodyTooLarge(visit.body_bytes_max))
      else {
        const scanned = scanner.feed(bytes)
        if (Result.isFailure(scanned)) reject(visit, scanned.failure)
        else scanned.success.forEach(meet)
      }
      return intake.pressure()
    },
    end: () => {
      const whole = message
      if (whole === undefined) return reject(visit, no_object)
      admitPolicy(puts, visit, whole.said.policy, () => answerPut(puts, visit, intake.store(whole)))
    },
    drop: intake.drop,
    fail: (cause) => rejectFault(visit, cause),
  })
}
