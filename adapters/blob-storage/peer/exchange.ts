/**
 * Flow control of one exchange between two nodes.
 *
 * Each side may have a window of bytes in transit. The receiver grants credit for the bytes it has
 * consumed. So a slow disk on one node delays only the exchanges with that disk, not the whole
 * connection.
 */
import { piece_bytes_max } from "./frame.ts"

/** Maximum number of bytes in transit in one direction of an exchange. */
export const window_bytes = 4 * piece_bytes_max

/** Consumed bytes before the next credit frame, so that there are fewer frames than pieces. */
const step_bytes = window_bytes / 16

interface Waiter {
  readonly resolve: () => void
  readonly reject: (cause: Error) => void
}

/** The send window: tracks the credit granted by the receiver. */
export const makeSendWindow = () => {
  let credit = window_bytes
  let waiter: Waiter | undefined
  let failure: Error | undefined
  return {
    /** Takes credit for these bytes, waiting until there is any. One piece may overdraw it. */
    take: async (bytes: number) => {
      if (failure) throw failure
      if (credit <= 0) {
        await new Promise<void>((resolve, reject) => {
          waiter = { resolve, reject }
        })
      }
      credit -= bytes
    },
    /** Takes credit for these bytes if there is any; returns whether it did. */
    takeNow: (bytes: number) => {
      if (failure !== undefined || credit <= 0) return false
      credit -= bytes
      return true
    },
    grant: (bytes: number) => {
      credit += bytes
      if (credit <= 0) return
      waiter?.resolve()
      waiter = undefined
    },
    end: (cause: Error) => {
      failure ??= cause
      waiter?.reject(failure)
      waiter = undefined
    },
  }
}

/** The receive buffer. `grant` sends credit to the other side. */
export const makeReceiveBuffer = (grant: (bytes: number) => void) => {
  const pieces: Array<Uint8Array> = []
  let buffered_bytes = 0
  let ungranted = 0
  let is_last = false
  let failure: Error | undefined
  let waiter: Waiter | undefined

  const wake = () => {
    waiter?.resolve()
    waiter = undefined
  }
  return {
    /** Buffers a piece; returns false if the sender exceeded its window. */
    push: (piece: Uint8Array, last: boolean) => {
      if (piece.length > 0) pieces.push(piece)
      buffered_bytes += piece.length
      is_last ||= last
      wake()
      return buffered_bytes <= window_bytes + piece_bytes_max
    },
    end: (cause: Error) => {
      failure ??= cause
      wake()
    },
    /** The pieces in order, up to the last; throws if the exchange ends early. */
    async *pieces(): AsyncGenerator<Uint8Array, void> {
      for (;;) {
        const piece = pieces.shift()
        if (piece !== undefined) {
          buffered_bytes -= piece.length
          ungranted += piece.length
          if (ungranted >= step_bytes) {
            grant(ungranted)
            ungranted = 0
          }
          yield piece
          continue
        }
        if (is_last) return
        if (failure) throw failure
        await new Promise<void>((resolve, reject) => {
          waiter = { resolve, reject }
        })
      }
    },
  }
}
