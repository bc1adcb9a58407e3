/** A view that polls and redraws itself. */
import { morphChildren } from "../element.ts"
import { type StreamEvent, listen } from "./events.ts"
import { loading } from "./parts.ts"
import { poll } from "./repeat.ts"

export interface Polling {
  /** Requests the data and returns the view's elements. */
  readonly load: () => Promise<readonly Node[]>
  /** Polling interval in milliseconds. */
  readonly ms: () => number
  /** Whether an event triggers a request at once; by default none does. */
  readonly refreshesOn?: (event: StreamEvent) => boolean
}

/** Coalesces bursts of events into one request. */
const burst_ms = 300

/** Draws into `place` until closed; drops responses that a newer request has overtaken. */
export const pollingView = (place: HTMLElement, { load: ask, ms, refreshesOn: hears }: Polling) => {
  let is_closed = false
  let asked = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  place.replaceChildren(loading())
  const asking = poll(async () => {
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
    /** Requests at once, for example after the filters changed. */
    now: () => asking.now(),
    close: () => {
      is_closed = true
      clearTimeout(timer)
      asking.stop()
      silence()
    },
  }
}
