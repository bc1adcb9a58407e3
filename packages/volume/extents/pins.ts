/** Pins of spans that are being read: a span freed in the meantime waits for its readers. */
import type { Span } from "./free-map.ts"

/** A span of the file with this number. */
export interface Pinned extends Span {
  readonly file: number
}

interface Pin {
  readers: number
  is_freed: boolean
}

const keyOf = ({ file, start, end }: Pinned) => `${file} ${start} ${end}`

/** Calls `release` for a freed span once its last reader has unpinned it. */
export const makePins = (release: (span: Pinned) => void) => {
  const pins = new Map<string, Pin>()

  const unpin = (span: Pinned) => {
    const key = keyOf(span)
    const pin = pins.get(key)
    if (!pin) return
    pin.readers -= 1
    if (pin.readers > 0) return
    pins.delete(key)
    if (pin.is_freed) release(span)
  }
  /** Pins the spans until the returned function is called, which is idempotent. */
  const pin = (spans: ReadonlyArray<Pinned>) => {
    for (const span of spans) {
      const key = keyOf(span)
      const known = pins.get(key)
      if (known) known.readers += 1
      else pins.set(key, { readers: 1, is_freed: false })
    }
    let is_pinned = true
    return () => {
      if (!is_pinned) return
      is_pinned = false
      spans.forEach(unpin)
    }
  }
  /** Whether a span that is being freed has to wait for its readers. `release` follows then. */
  const defersFree = (span: Pinned) => {
    const known = pins.get(keyOf(span))
    if (known) known.is_freed = true
    return known !== undefined
  }
  /** Cancels a free that waits. Returns whether there was one. */
  const cancelFree = (span: Pinned) => {
    const known = pins.get(keyOf(span))
    const was_freed = known?.is_freed === true
    if (known) known.is_freed = false
    return was_freed
  }
  return { pin, defersFree, cancelFree }
}
