/**
 * The frame format of connections between nodes: a header of twelve bytes and a payload.
 *
 * Little endian: payload length u32, exchange u32, kind u8, operation u8, flags u8, zero u8. The
 * payload of `open` and `reply` is a JSON length, the JSON, and the first bytes of the body.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice.
 */

/** Maximum size of a piece of a stream; a frame may be a little larger because of its JSON. */
export const piece_bytes_max = 1024 * 1024

/** Maximum size of a frame's JSON: several times a record with all labels. */
const json_bytes_max = 256 * 1024

export const head_bytes = 12
const length_bytes = 4
const payload_bytes_max = piece_bytes_max + json_bytes_max + length_bytes

const kinds = ["open", "reply", "data", "credit", "reset", "ping", "pong"] as const
export type FrameKind = (typeof kinds)[number]

export interface Frame {
  readonly kind: FrameKind
  /** The exchange that the frame belongs to; 0 for `ping` and `pong`. */
  readonly exchange: number
  readonly operation: number
  /** Whether this is the last frame of this side of the exchange. */
  readonly is_last: boolean
  readonly payload: Uint8Array
}

const flag_last = 1

const empty = new Uint8Array(0)

/** Encodes a frame as buffers to write in order. */
export const encodeFrame = (
  frame: Omit<Frame, "payload">,
  ...payload: ReadonlyArray<Uint8Array>
): Array<Uint8Array> => {
  const head = Buffer.allocUnsafe(head_bytes)
  const length = payload.reduce((sum, part) => sum + part.length, 0)
  head.writeUInt32LE(length, 0)
  head.writeUInt32LE(frame.exchange, 4)
  head[8] = kinds.indexOf(frame.kind)
  head[9] = frame.operation
  head[10] = frame.is_last ? flag_last : 0
  head[11] = 0
  return [head, ...payload]
}

/** Encodes length-prefixed JSON, the beginning of `open` and `reply`. */
export const encodeJson = (value: unknown): Uint8Array => {
  const text = JSON.stringify(value)
  const bytes = Buffer.allocUnsafe(length_bytes + Buffer.byteLength(text))
  bytes.writeUInt32LE(bytes.length - length_bytes, 0)
  bytes.write(text, length_bytes)
  if (bytes.length > json_bytes_max) throw new Error("the JSON of a frame is too long")
  return bytes
}

/** Splits a payload into its JSON and the bytes after it. */
export const decodeJson = (payload: Uint8Array): { json: unknown; bytes: Uint8Array } => {
  const buffer = Buffer.from(payload.buffer, payload.byteOffset, payload.length)
  if (buffer.length < length_bytes) throw new Error("a frame ends before its JSON")
  const end = length_bytes + buffer.readUInt32LE(0)
  if (end > buffer.length) throw new Error("a frame ends inside its JSON")
  try {
    const json: unknown = JSON.parse(buffer.toString("utf8", length_bytes, end))
    return { json, bytes: payload.subarray(end) }
  } catch {
    throw new Error("a frame has invalid JSON")
  }
}

const decodeHead = (head: Buffer): Omit<Frame, "payload"> & { readonly length: number } => {
  const length = head.readUInt32LE(0)
  const kind = kinds[head[8] ?? kinds.length]
  if (kind === undefined) throw new Error(`unknown frame kind ${head[8]}`)
  if (length > payload_bytes_max) throw new Error(`a frame of ${length} bytes is too long`)
  const is_last = ((head[10] ?? 0) & flag_last) !== 0
  return { kind, exchange: head.readUInt32LE(4), operation: head[9] ?? 0, is_last, length }
}

/** A data frame that has arrived partially. */
interface PartialFrame extends Omit<Frame, "payload"> {
  readonly remaining: number
}

/**
 * Splits received bytes into frames. A data frame is passed on in the parts in which it arrives,
 * without copying; only its last part may be marked as last. Other frames are views of the received
 * bytes if these contain the whole frame, and copies otherwise. At most one such frame is buffered.
 */
export const frameReader = () => {
  let buffered: Buffer = Buffer.alloc(0)
  let needed_bytes = head_bytes
  let pending: Array<Buffer> = []
  let pending_bytes = 0
  let partial: PartialFrame | undefined

  /** Passes on the next part of a partial frame; returns the bytes after it. */
  const emitPart = (
    { remaining, ...head }: PartialFrame,
    bytes: Buffer,
    frames: Array<Frame>,
  ): Buffer => {
    const payload = bytes.subarray(0, remaining)
    const is_whole = payload.length === remaining
    partial = is_whole ? undefined : { ...head, remaining: remaining - payload.length }
    if (payload.length > 0) frames.push({ ...head, is_last: head.is_last && is_whole, payload })
    return bytes.subarray(payload.length)
  }
  const parse = (bytes: Buffer, frames: Array<Frame>): Buffer => {
    let rest = partial === undefined ? bytes : emitPart(partial, bytes, frames)
    for (;;) {
      if (rest.length < head_bytes) {
        needed_bytes = head_bytes
        return rest
      }
      const { length, ...head } = decodeHead(rest)
      const end = head_bytes + length
      if (rest.length < end && head.kind === "data") {
        return emitPart({ ...head, remaining: length }, rest.subarray(head_bytes), frames)
      }
      if (rest.length < end) {
        needed_bytes = end
        return rest
      }
      frames.push({ ...head, payload: length === 0 ? empty : rest.subarray(head_bytes, end) })
      rest = rest.subarray(end)
    }
  }
  /** Returns the frames that these bytes complete. */
  return (bytes: Buffer): ReadonlyArray<Frame> => {
    const frames: Array<Frame> = []
    if (buffered.length === 0 && pending_bytes === 0) {
      buffered = parse(bytes, frames)
      return frames
    }
    pending.push(bytes)
    pending_bytes += bytes.length
    // Joined only when complete, so that a long frame is copied once.
    if (buffered.length + pending_bytes < needed_bytes) return frames
    const joined = Buffer.concat([buffered, ...pending])
    pending = []
    pending_bytes = 0
    buffered = parse(joined, frames)
    return frames
  }
}
