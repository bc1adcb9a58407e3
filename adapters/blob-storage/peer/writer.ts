/**
 * Writes frames to a connection.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice.
 */
import type { Duplex } from "node:stream"
import { encodeFrame, type Frame, piece_bytes_max } from "./frame.ts"

/** Maximum number of buffers in one frame: sixteen units of a shard fill a frame. */
const parts_max = 64

/** The last frame, which may grow until it is written. */
interface PendingFrame {
  head: Omit<Frame, "payload">
  readonly parts: Array<Uint8Array>
  bytes: number
}

const lengthOf = (parts: ReadonlyArray<Uint8Array>) =>
  parts.reduce((sum, part) => sum + part.length, 0)

/**
 * Writes frames. Data of one exchange within one turn of the event loop becomes one frame, which
 * reduces the receiver's work. A frame that completes its side of an exchange is flushed before any
 * other task runs: the other side waits for it, and the next turn may take 20 ms.
 */
export const frameWriter = (socket: Duplex) => {
  let is_corked = false
  /** Whether a flush is scheduled before the next task, and at the end of the turn. */
  let [has_tick, has_turn] = [false, false]
  let pending: PendingFrame | undefined

  const write = () => {
    if (pending === undefined || socket.destroyed) return
    for (const part of encodeFrame(pending.head, ...pending.parts)) socket.write(part)
    pending = undefined
  }
  const flush = () => {
    if (!is_corked) return
    is_corked = false
    write()
    socket.uncork()
  }
  const flushAtTick = () => {
    has_tick = false
    flush()
  }
  const flushAtTurn = () => {
    has_turn = false
    flush()
  }
  const canAppend = ({ kind, exchange }: PendingFrame["head"], bytes: number) =>
    pending?.head.kind === "data" &&
    kind === "data" &&
    pending.head.exchange === exchange &&
    pending.parts.length < parts_max &&
    pending.bytes + bytes <= piece_bytes_max

  return (head: PendingFrame["head"], ...payload: ReadonlyArray<Uint8Array>) => {
    if (!is_corked) {
      is_corked = true
      socket.cork()
    }
    const bytes = lengthOf(payload)
    if (pending !== undefined && canAppend(head, bytes)) {
      // The newest header has the current last flag.
      pending.head = head
      pending.parts.push(...payload)
      pending.bytes += bytes
    } else {
      write()
      pending = { head, parts: [...payload], bytes }
    }
    const is_whole = head.is_last && head.kind !== "data"
    if (is_whole && !has_tick) {
      has_tick = true
      process.nextTick(flushAtTick)
    } else if (!is_whole && !has_turn) {
      has_turn = true
      setImmediate(flushAtTurn)
    }
  }
}
