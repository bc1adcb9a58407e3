/** A hot request's body, piece by piece and no faster than it is taken. */
import type { HotVisit } from "#gateway/direct.ts"

export interface BodyTaker {
  /** Takes a piece, which does not change any more; a promise holds the next one back. */
  readonly take: (bytes: Uint8Array) => Promise<unknown> | undefined
  /** The body is there in full. */
  readonly end: () => void
  /** It does not come in full, or nobody waits for the answer any more. */
  readonly drop: () => void
  /** What `take` threw, or what it promised in vain. */
  readonly fail: (cause: unknown) => void
}

/** Reads the body of a visit into its taker, which is told of nothing more after its end. */
export const readBody = (visit: HotVisit, { take, end, drop, fail }: BodyTaker) => {
  const { request } = visit
  const onData = (bytes: Uint8Array) => {
    try {
      const taken = take(bytes)
      if (taken === undefined || visit.isOver()) return
      request.pause()
      taken.then(() => {
        if (!visit.isOver()) request.resume()
      }, fail)
    } catch (cause) {
      fail(cause)
    }
  }
  const onEnd = () => {
    try {
      end()
    } catch (cause) {
      visit.fail(cause)
    }
  }
  visit.onEnd(() => {
    request.off("data", onData)
    request.off("end", onEnd)
    drop()
  })
  request.on("data", onData)
  request.on("end", onEnd)
}
