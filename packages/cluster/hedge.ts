/** Asking one node after the other, and the next one too where one is slow to answer. */
import type { Timing } from "./timing.ts"

/** How long an answer may take until the next is asked beside it, in milliseconds. */
export const hedge_ms = 50

/**
 * The first answer that is not undefined; undefined where none is. Asks in order: the next as soon
 * as one has answered undefined, or `hedge_ms` after the last was asked. What comes too late is
 * given to `late`. `asks` never reject.
 */
export const firstAnswer = <A extends object>(
  { after }: Pick<Timing, "after">,
  asks: ReadonlyArray<() => Promise<A | undefined>>,
  late: (answer: A) => void,
): Promise<A | undefined> =>
  new Promise((resolve) => {
    let asked = 0
    let open = 0
    let is_over = false
    let cancel = () => {}

    const end = (answer: A | undefined) => {
      is_over = true
      cancel()
      resolve(answer)
    }
    const next = () => {
      cancel()
      const ask = asks[asked]
      if (ask === undefined) {
        if (open === 0) end(undefined)
        return
      }
      asked += 1
      open += 1
      cancel = after(hedge_ms, next)
      void ask().then((answer) => {
        open -= 1
        if (is_over) {
          if (answer !== undefined) late(answer)
        } else if (answer === undefined) next()
        else end(answer)
      })
    }
    next()
  })
