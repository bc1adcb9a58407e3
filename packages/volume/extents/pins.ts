/** Pins of spans that are being read: a span freed meanwhile waits for its readers. */
import type { Stretch } from "./room.ts"

/** A span of the file with this number. */
export interface Pinned extends Stretch {
  readonly file: number
}

interface Pin {
  readers: number
  is_freed: boolean
}

const keyOf = ({ file, start, end }: Pinned) => `${file} ${start} ${end}`

/** Calls `giveBack` for a freed span once its last reader has unpinned it. */
export const makePins = (giveBack: (stretch: Pinned) => void) => {
  const pins = new Map<string, Pin>()

  const unpin = (stretch: Pinned) => {
    const key = keyOf(stretch)
    const pin = pins.get(key)
    if (!pin) return
    pin.readers -= 1
    if (pin.readers > 0) return
    pins.delete(key)
    if (pin.is_freed) giveBack(stretch)
  }
  /** Pins the spans until the returned function is called, which is idempotent. */
  const pin = (stretches: ReadonlyArray<Pinned>) => {
    for (const stretch of stretches) {
      const key = keyOf(stretch)
      const there = pins.get(key)
      if (there) there.readers += 1
      else pins.set(key, { readers: 1, is_freed: false })
    }
    let is_pinned = true
    return () => {
      if (!is_pinned) return
      is_pinned = false
      stretches.forEach(unpin)
    }
  }
  /** Whether a span that is being freed has to wait for its readers. `giveBack` follows then. */
  const holdsBack = (stretch: Pinned) => {
    const there = pins.get(keyOf(stretch))
    if (there) there.is_freed = true
    return there !== undefined
  }
  /** Cancels a free that waits. Returns whether there was one. */
  const takeBack = (stretch: Pinned) => {
    const there = pins.get(keyOf(stretch))
    const was_freed = there?.is_freed === true
    if (there) there.is_freed = false
    return was_freed
  }
  return { pin, holdsBack, takeBack }
}
