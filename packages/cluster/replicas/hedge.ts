/** Hedged requests: if a node is slow, the request also goes to the next node. */
import type { Timing } from "../timing.ts"

/** Delay before the next node gets the request, in milliseconds. */
export const hedge_ms = 50

/**
 * Resolves with the first response that is not undefined, or with undefined if there is none.
 * Starts the attempts in order: the next one as soon as one responds undefined, or `hedge_ms` after
 * the last start. Responses that arrive later go to `late`. Attempts must never reject.
 */
export const firstResponse = <A extends object>(
  { after }: Pick<Timing, "after">,
  attempts: ReadonlyArray<() => Promise<A | undefined>>,
  late: (response: A) => void,
): Promise<A | undefined> =>
  new Promise((resolve) => {
    let started = 0
    let open = 0
    let is_settled = false
    let cancel = () => {}

    const settle = (response: A | undefined) => {
      is_settled = true
      cancel()
      resolve(response)
    }
    const next = () => {
      cancel()
      const attempt = attempts[started]
      if (attempt === undefined) {
        if (open === 0) settle(undefined)
        return
      }
      started += 1
      open += 1
      cancel = after(hedge_ms, next)
      void attempt().then((response) => {
        open -= 1
        if (is_settled) {
          if (response !== undefined) late(response)
        } else if (response === undefined) next()
        else settle(response)
      })
    }
    next()
  })
