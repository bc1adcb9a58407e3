/**
 * One side of one exchange between two nodes: what it still may send, and what came for it.
 *
 * Each side may have a window of bytes under way that the other has not taken yet; who receives
 * says how much it took. So a slow disk on one node holds up what is sent to it, and nothing else
 * on the connection.
 */
import { piece_bytes_max } from "./frame.ts"

/** Bytes under way in one direction of one exchange at most. */
export const window_bytes = 4 * piece_bytes_max

/** Bytes that are taken before the other side is told: a word for each piece would be as many. */
const step_bytes = window_bytes / 16

interface Waiting {
  readonly resolve: () => void
  readonly reject: (cause: Error) => void
}

/** What may still be sent, by the credit that the other side gave. */
export const makeSending = () => {
  let credit = window_bytes
  let waiting: Waiting | undefined
  let ended: Error | undefined
  return {
    /** Takes credit for these bytes once there is any: a piece may run the credit below zero. */
    take: async (bytes: number) => {
      if (ended) throw ended
      if (credit <= 0) {
        await new Promise<void>((resolve, reject) => {
          waiting = { resolve, reject }
        })
      }
      credit -= bytes
    },
    /** Whether these bytes may go at once; takes the credit then. */
    takeNow: (bytes: number) => {
      if (ended !== undefined || credit <= 0) return false
      credit -= bytes
      return true
    },
    grant: (bytes: number) => {
      credit += bytes
      if (credit <= 0) return
      waiting?.resolve()
      waiting = undefined
    },
    end: (cause: Error) => {
      ended ??= cause
      waiting?.reject(ended)
      waiting = undefined
    },
  }
}

/** What came and was not taken yet. `grant` tells the other side that it may send more. */
export const makeReceiving = (grant: (bytes: number) => void) => {
  const pieces: Array<Uint8Array> = []
  let held = 0
  let untold = 0
  let is_last = false
  let failure: Error | undefined
  let waiting: Waiting | undefined

  const wake = () => {
    waiting?.resolve()
    waiting = undefined
  }
  return {
    /** Whether the other side keeps to its window. */
    push: (piece: Uint8Array, last: boolean) => {
      if (piece.length > 0) pieces.push(piece)
      held += piece.length
      is_last ||= last
      wake()
      return held <= window_bytes + piece_bytes_max
    },
    end: (cause: Error) => {
      failure ??= cause
      wake()
    },
    /** The pieces in order, until the last; throws where the exchange ends before. */
    async *pieces(): AsyncGenerator<Uint8Array, void> {
      for (;;) {
        const piece = pieces.shift()
        if (piece !== undefined) {
          held -= piece.length
          untold += piece.length
          if (untold >= step_bytes) {
            grant(untold)
            untold = 0
          }
          yield piece
          continue
        }
        if (is_last) return
        if (failure) throw failure
        await new Promise<void>((resolve, reject) => {
          waiting = { resolve, reject }
        })
      }
    },
  }
}
