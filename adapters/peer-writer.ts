/**
 * Frames on their way out of one side of a connection between two nodes.
 *
 * Source: document 1 §1 InternalService, whose shapes may change without notice.
 */
import type { Duplex } from "node:stream"
import { encodeFrame, type Frame, piece_bytes_max } from "./peer-frame.ts"

/** Parts of one frame at most: sixteen units of a shard fill one. */
const parts_max = 64

/** The frame that was said last, which may grow until it leaves. */
interface Growing {
  head: Omit<Frame, "payload">
  readonly parts: Array<Uint8Array>
  bytes: number
}

const lengthOf = (parts: ReadonlyArray<Uint8Array>) =>
  parts.reduce((sum, part) => sum + part.length, 0)

/**
 * Frames on their way out. What is said in one turn of the loop leaves in one write, and what one
 * exchange sends of its bytes in a row as one frame: fewer frames are fewer parts to be taken.
 */
export const frameWriter = (socket: Duplex) => {
  let is_corked = false
  let growing: Growing | undefined

  const write = () => {
    if (growing === undefined || socket.destroyed) return
    for (const part of encodeFrame(growing.head, ...growing.parts)) socket.write(part)
    growing = undefined
  }
  const leave = () => {
    is_corked = false
    write()
    socket.uncork()
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
      setImmediate(leave)
    }
    const bytes = lengthOf(payload)
    if (growing !== undefined && isMore(head, bytes)) {
      // The head of what came last says whether it was the last.
      growing.head = head
      growing.parts.push(...payload)
      growing.bytes += bytes
    } else {
      write()
      growing = { head, parts: [...payload], bytes }
    }
  }
}
