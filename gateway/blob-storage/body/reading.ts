/** Reads a request's body piece by piece, no faster than it is taken. */
import type { Exchange } from "#gateway/direct.ts"

export interface BodyTaker {
  /** Takes a piece, which does not change any more; a promise holds the next one back. */
  readonly take: (bytes: Uint8Array) => Promise<unknown> | undefined
  /** The body has arrived in full. */
  readonly end: () => void
  /** It does not arrive in full, or the client is gone. */
  readonly drop: () => void
  /** Gets what `take` threw, or rejected with. */
  readonly fail: (cause: unknown) => void
}

const continued = /^100-continue$/i

/** Whether the client sends the body only once it is invited to. */
export const isExpectant = ({ headers: { expect } }: Exchange) =>
  expect !== undefined && continued.test(expect)

/** Reads the body of an exchange into its taker, until its end or the exchange's. */
export const readBody = (exchange: Exchange, { take, end, drop, fail }: BodyTaker) => {
  const { request, response } = exchange
  if (isExpectant(exchange)) response.writeContinue()
  const onData = (bytes: Uint8Array) => {
    try {
      const taken = take(bytes)
      if (taken === undefined || exchange.isOver()) return
      request.pause()
      taken.then(() => {
        if (!exchange.isOver()) request.resume()
      }, fail)
    } catch (cause) {
      fail(cause)
    }
  }
  const onEnd = () => {
    try {
      end()
    } catch (cause) {
      exchange.fail(cause)
    }
  }
  exchange.onEnd(() => {
    request.off("data", onData)
    request.off("end", onEnd)
    drop()
  })
  request.on("data", onData)
  request.on("end", onEnd)
}
