/**
 * Exports messages of a JetStream stream as compressed JSON lines, and imports them with their
 * original sequences.
 */
import { isUtf8 } from "node:buffer"
import { pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import type { JetStreamManager } from "@nats-io/jetstream"
import { headers, type NatsConnection, nuid } from "@nats-io/transport-node"
import { Effect, Schema, Stream } from "effect"
import type { Bytes } from "#adapters/state/seal.ts"
import { undefinedIfMissing } from "#bus"
import type { LogUnavailable } from "#events/log.ts"
import type { Delivered, Source } from "#journal"
import { append_timeout_ms, position_header, readMessages } from "#journal"
import { Position } from "#schemas/system/checkpoint.ts"

/** Maximum messages and bytes of one write, equal to the log's own groups. */
const group_messages_max = 256
const group_bytes_max = 4 * 1024 * 1024

/** Maximum length of a line: a message has at most 1 MiB, and few characters are escaped. */
const line_chars_max = 8 * 1024 * 1024

/** An exported message. */
export const CopiedMessage = Schema.Struct({
  sequence: Position,
  subject: Schema.String,
  /** For a copy of a commit: the original's position (docs/decisions/0133). */
  position: Schema.optionalKey(Position),
  /** Its content: usually JSON, empty for a marker. */
  data: Schema.String,
  /** Content in base64, instead of `data`, if it is not UTF-8. */
  base64: Schema.optionalKey(Schema.String),
})
export type CopiedMessage = typeof CopiedMessage.Type

const decodeLine = Schema.decodeUnknownSync(Schema.fromJsonString(CopiedMessage))

/** Encodes a message's bytes, as text if possible. */
const encodeBytes = (bytes: Uint8Array): Pick<CopiedMessage, "data" | "base64"> => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return isUtf8(bytes)
    ? { data: buffer.toString() }
    : { data: "", base64: buffer.toString("base64") }
}

/** Decodes a message's original bytes. */
export const decodeBytes = ({ data, base64 }: Pick<CopiedMessage, "data" | "base64">) =>
  base64 === undefined ? Buffer.from(data) : Buffer.from(base64, "base64")

const copyOf = ({ position: sequence, message }: Delivered): CopiedMessage => {
  const of = Number(message.headers?.get(position_header))
  // The header may not be from a roll: an invalid position is ignored.
  const position_field = Number.isSafeInteger(of) && of > 0 ? { position: of } : {}
  return { sequence, subject: message.subject, ...position_field, ...encodeBytes(message.data) }
}

const lineOf = (message: CopiedMessage) => `${JSON.stringify(message)}\n`

const compressLines = (lines: AsyncIterable<string> | Iterable<string>): Bytes => {
  const gzip = createGzip()
  // The error reaches the reader of the compressed bytes.
  pipeline(lines, gzip).catch(() => undefined)
  return gzip
}

/** A range of a stream. */
export interface SequenceRange {
  readonly filter: string
  /** The last sequence before the range. */
  readonly after: number
  /** The last sequence of the range. */
  readonly until: number
}

/** Exports a range of a stream, compressed; calls `each` with every message. */
export const exportMessages = (
  source: Source,
  { filter, after, until }: SequenceRange,
  each: (message: CopiedMessage) => void,
) =>
  readMessages(source, { filter, after, until: Effect.succeed(until) }).pipe(
    Stream.map((delivered) => {
      const message = copyOf(delivered)
      each(message)
      return lineOf(message)
    }),
    (lines: Stream.Stream<string, LogUnavailable>) => Stream.toAsyncIterableEffect(lines),
    Effect.map(compressLines),
  )

/**
 * The last message of each subject of a stream that keeps only those, in order; empty if the stream
 * does not exist. Each is read separately, so that a message that is replaced in the meantime is
 * not missed, as it would be by a read up to a sequence. Empty messages are skipped.
 */
export const lastMessages = async (jsm: JetStreamManager, stream: string, filter: string) => {
  const found: Array<CopiedMessage> = []
  const info = await jsm.streams.info(stream, { subjects_filter: filter }).catch(undefinedIfMissing)
  for (const subject of Object.keys(info?.state.subjects ?? {})) {
    const last = await jsm.streams.getMessage(stream, { last_by_subj: subject })
    if (last === null || last.data.length === 0) continue
    found.push({ sequence: last.seq, subject, ...encodeBytes(last.data) })
  }
  return found.toSorted((one, other) => one.sequence - other.sequence)
}

/** Exports the given messages, compressed. */
export const compressMessages = (messages: ReadonlyArray<CopiedMessage>) =>
  compressLines(messages.map(lineOf))

/** Parses the messages of an export; throws if the format is invalid. */
export async function* parseMessages(file: Bytes): AsyncIterable<CopiedMessage> {
  const gunzip = createGunzip()
  pipeline(file, gunzip).catch(() => undefined)
  const text = new TextDecoder("utf-8", { fatal: true })
  let rest = ""
  for await (const piece of gunzip) {
    const lines = (rest + text.decode(piece, { stream: true })).split("\n")
    rest = lines.pop() ?? ""
    if (rest.length > line_chars_max) throw new Error("a line is too long")
    for (const line of lines) yield decodeLine(line)
  }
  if (rest !== "") throw new Error("its last line is cut off")
}

/** Destination of an import. */
export interface Destination {
  readonly connection: NatsConnection
  readonly jsm: JetStreamManager
  readonly stream: string
}

interface Ack {
  readonly seq?: number
  readonly error?: { readonly description: string }
}

/**
 * Writes a group, each message conditional on its predecessor; completes when the last is stored.
 * A stream with atomic batches syncs the disk once.
 */
const send = async (
  { connection, stream }: Destination,
  group: ReadonlyArray<CopiedMessage>,
  is_atomic: boolean,
) => {
  const batch = nuid.next()
  const is_batch = is_atomic && group.length > 1
  for (const [i, message] of group.entries()) {
    const { sequence, subject, position } = message
    const data = decodeBytes(message)
    const checks = headers()
    checks.set("Nats-Expected-Stream", stream)
    if (!is_batch || i === 0) checks.set("Nats-Expected-Last-Sequence", `${sequence - 1}`)
    if (position !== undefined) checks.set(position_header, `${position}`)
    if (is_batch) {
      checks.set("Nats-Batch-Id", batch)
      checks.set("Nats-Batch-Sequence", `${i + 1}`)
    }
    if (i < group.length - 1) {
      connection.publish(subject, data, { headers: checks })
      continue
    }
    if (is_batch) checks.set("Nats-Batch-Commit", "1")
    const options = { headers: checks, timeout: append_timeout_ms }
    const { seq, error } = (await connection.request(subject, data, options)).json<Ack>()
    if (error !== undefined) throw new Error(error.description)
    if (seq !== sequence) throw new Error(`message ${sequence} of ${stream} was stored at ${seq}`)
  }
}

/** Splits messages into groups for writing. */
async function* inGroups(messages: AsyncIterable<CopiedMessage>, after: number) {
  let group: Array<CopiedMessage> = []
  let bytes = 0
  for await (const message of messages) {
    if (message.sequence <= after) continue
    bytes += decodeBytes(message).length
    const is_full = group.length >= group_messages_max || bytes > group_bytes_max
    if (is_full && group.length > 0) {
      yield group
      group = []
      bytes = decodeBytes(message).length
    }
    group.push(message)
  }
  if (group.length > 0) yield group
}

/**
 * Writes the messages that the stream does not have yet, each at its original sequence. Rejects
 * without writing if the stream's end does not match.
 */
export const importMessages = async (
  to: Destination,
  messages: AsyncIterable<CopiedMessage>,
  onCopied: (sequence: number) => Promise<void>,
) => {
  const { state, config } = await to.jsm.streams.info(to.stream)
  for await (const group of inGroups(messages, state.last_seq)) {
    await send(to, group, config.allow_atomic === true)
    await onCopied(group.at(-1)?.sequence ?? 0)
  }
}
