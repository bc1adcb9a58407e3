/**
 * What two nodes say to each other on one connection: frames of twelve bytes and a payload.
 *
 * Little endian: payload length u32, exchange u32, kind u8, operation u8, flags u8, zero u8. An
 * `open` and a `reply` carry JSON, with its length before it, and then the first bytes.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice.
 */

/** Bytes of a piece at most, as a stream is cut; a frame may hold a little more for its JSON. */
export const piece_bytes_max = 1024 * 1024

/** JSON of one frame at most: a record with all labels, several times. */
const json_bytes_max = 256 * 1024

export const head_bytes = 12
const length_bytes = 4
const payload_bytes_max = piece_bytes_max + json_bytes_max + length_bytes

const kinds = ["open", "reply", "data", "credit", "reset", "ping", "pong"] as const
export type FrameKind = (typeof kinds)[number]

export interface Frame {
  readonly kind: FrameKind
  /** Which of the connection's exchanges it belongs to; 0 for `ping` and `pong`. */
  readonly exchange: number
  readonly operation: number
  /** Whether this side says no more in the exchange. */
  readonly is_last: boolean
  readonly payload: Uint8Array
}

const flag_last = 1

const empty = new Uint8Array(0)

/** The pieces of one frame, to be written one behind the other. */
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

/** JSON with its length before it, as an `open` and a `reply` begin. */
export const encodeJson = (value: unknown): Uint8Array => {
  const text = JSON.stringify(value)
  const bytes = Buffer.allocUnsafe(length_bytes + Buffer.byteLength(text))
  bytes.writeUInt32LE(bytes.length - length_bytes, 0)
  bytes.write(text, length_bytes)
  if (bytes.length > json_bytes_max) throw new Error("what is said to a peer is too long")
  return bytes
}

/** The JSON that a payload begins with, and the bytes behind it. */
export const decodeJson = (payload: Uint8Array): { json: unknown; bytes: Uint8Array } => {
  const buffer = Buffer.from(payload.buffer, payload.byteOffset, payload.length)
  if (buffer.length < length_bytes) throw new Error("a frame ends before its JSON")
  const end = length_bytes + buffer.readUInt32LE(0)
  if (end > buffer.length) throw new Error("a frame ends inside its JSON")
  try {
    const json: unknown = JSON.parse(buffer.toString("utf8", length_bytes, end))
    return { json, bytes: payload.subarray(end) }
  } catch {
    throw new Error("a frame's JSON cannot be read")
  }
}

const decodeHead = (head: Buffer): Omit<Frame, "payload"> & { readonly length: number } => {
  const length = head.readUInt32LE(0)
  const kind = kinds[head[8] ?? kinds.length]
  if (kind === undefined) throw new Error(`there is no frame of kind ${head[8]}`)
  if (length > payload_bytes_max) throw new Error(`a frame of ${length} bytes is too long`)
  const is_last = ((head[10] ?? 0) & flag_last) !== 0
  return { kind, exchange: head.readUInt32LE(4), operation: head[9] ?? 0, is_last, length }
}

/** A frame of bytes of which some are still to come. */
interface Begun extends Omit<Frame, "payload"> {
  readonly left: number
}

/**
 * Cuts what a connection receives into frames. One of a stream's bytes is handed on in the parts
 * that it comes in, as if they were frames of their own: nothing of it is copied, and the last part
 * alone is last. Another's payload is a view of the bytes that came where these hold all of it, and
 * else a copy; what is kept is never more than one such frame.
 */
export const frameReader = () => {
  let kept: Buffer = Buffer.alloc(0)
  let wanted = head_bytes
  let gathered: Array<Buffer> = []
  let gathered_bytes = 0
  let begun: Begun | undefined

  /** Hands on what has come of the frame that began before; answers the bytes behind it. */
  const goOn = ({ left, ...head }: Begun, bytes: Buffer, frames: Array<Frame>): Buffer => {
    const payload = bytes.subarray(0, left)
    const is_whole = payload.length === left
    begun = is_whole ? undefined : { ...head, left: left - payload.length }
    if (payload.length > 0) frames.push({ ...head, is_last: head.is_last && is_whole, payload })
    return bytes.subarray(payload.length)
  }
  const cut = (bytes: Buffer, frames: Array<Frame>): Buffer => {
    let rest = begun === undefined ? bytes : goOn(begun, bytes, frames)
    for (;;) {
      if (rest.length < head_bytes) {
        wanted = head_bytes
        return rest
      }
      const { length, ...head } = decodeHead(rest)
      const end = head_bytes + length
      if (rest.length < end && head.kind === "data") {
        return goOn({ ...head, left: length }, rest.subarray(head_bytes), frames)
      }
      if (rest.length < end) {
        wanted = end
        return rest
      }
      frames.push({ ...head, payload: length === 0 ? empty : rest.subarray(head_bytes, end) })
      rest = rest.subarray(end)
    }
  }
  /** The frames that these bytes complete. */
  return (bytes: Buffer): ReadonlyArray<Frame> => {
    const frames: Array<Frame> = []
    if (kept.length === 0 && gathered_bytes === 0) {
      kept = cut(bytes, frames)
      return frames
    }
    gathered.push(bytes)
    gathered_bytes += bytes.length
    // Joined once it is enough, so that a long frame in many pieces is copied once.
    if (kept.length + gathered_bytes < wanted) return frames
    const joined = Buffer.concat([kept, ...gathered])
    gathered = []
    gathered_bytes = 0
    kept = cut(joined, frames)
    return frames
  }
}
