/** A view that polls and redraws itself. */
import { morphChildren } from "../element.ts"
import { listen, type StreamEvent } from "./events.ts"
import { loading } from "./parts.ts"
import { poll } from "./poll.ts"

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
export const pollingView = (place: HTMLElement, { load, ms, refreshesOn }: Polling) => {
  let is_closed = false
  let newest = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  place.replaceChildren(loading())
  const polling = poll(async () => {
    const number = ++newest
    const nodes = await load()
    if (!is_closed && number === newest) morphChildren(place, nodes)
  }, ms)
  const stopListening = listen((event) => {
    if (refreshesOn?.(event) !== true) return
    timer ??= setTimeout(() => {
      timer = undefined
      polling.now()
    }, burst_ms)
  })
  return {
    /** Requests at once, for example after the filters changed. */
    now: () => polling.now(),
    close: () => {
      is_closed = true
      clearTimeout(timer)
      polling.stop()
      stopListening()
    },
  }
}
