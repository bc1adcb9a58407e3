/** A view that draws itself anew from what it asks, again and again. */
import { morphChildren } from "../element.ts"
import { type Heard, listen } from "./events.ts"
import { loading } from "./parts.ts"
import { repeat } from "./repeat.ts"

export interface Living {
  /** What it is to show; asked for until another question or the end. */
  readonly ask: () => Promise<readonly Node[]>
  /** Between two questions, in milliseconds. */
  readonly ms: () => number
  /** Whether an event is a reason to ask at once; without it none is. */
  readonly hears?: (event: Heard) => boolean
}

/** Events come in bursts: one answer for all of a burst. */
const burst_ms = 300

/** Draws into `place` until closed; an answer to a question that was overtaken is not drawn. */
export const living = (place: HTMLElement, { ask, ms, hears }: Living) => {
  let is_closed = false
  let asked = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  place.replaceChildren(loading())
  const asking = repeat(async () => {
    const mine = ++asked
    const nodes = await ask()
    if (!is_closed && mine === asked) morphChildren(place, nodes)
  }, ms)
  const silence = listen((event) => {
    if (hears?.(event) !== true) return
    timer ??= setTimeout(() => {
      timer = undefined
      asking.now()
    }, burst_ms)
  })
  return {
    /** Asks at once: something else is wanted. */
    now: () => asking.now(),
    close: () => {
      is_closed = true
      clearTimeout(timer)
      asking.stop()
      silence()
    },
  }
}
