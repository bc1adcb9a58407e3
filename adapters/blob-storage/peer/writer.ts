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
interface Growing {
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
  let [is_next, is_soon] = [false, false]
  let growing: Growing | undefined

  const write = () => {
    if (growing === undefined || socket.destroyed) return
    for (const part of encodeFrame(growing.head, ...growing.parts)) socket.write(part)
    growing = undefined
  }
  const leave = () => {
    if (!is_corked) return
    is_corked = false
    write()
    socket.uncork()
  }
  const leaveNext = () => {
    is_next = false
    leave()
  }
  const leaveSoon = () => {
    is_soon = false
    leave()
  }
  const isMore = ({ kind, exchange }: Growing["head"], bytes: number) =>
    growing?.head.kind === "data" &&
    kind === "data" &&
    growing.head.exchange === exchange &&
    growing.parts.length < parts_max &&
    growing.bytes + bytes <= piece_bytes_max

  return (head: Growing["head"], ...payload: ReadonlyArray<Uint8Array>) => {
    if (!is_corked) {
      is_corked = true
      socket.cork()
    }
    const bytes = lengthOf(payload)
    if (growing !== undefined && isMore(head, bytes)) {
      // The newest header has the current last flag.
      growing.head = head
      growing.parts.push(...payload)
      growing.bytes += bytes
    } else {
      write()
      growing = { head, parts: [...payload], bytes }
    }
    const is_whole = head.is_last && head.kind !== "data"
    if (is_whole && !is_next) {
      is_next = true
      process.nextTick(leaveNext)
    } else if (!is_whole && !is_soon) {
      is_soon = true
      setImmediate(leaveSoon)
    }
  }
}
