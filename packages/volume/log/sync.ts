/**
 * Syncs of a volume's files that many callers share.
 */
import type { Segment } from "../parts.ts"

/**
 * Answers what makes durable all that was written to a file before it was called. Calls that come
 * while a sync runs share the next one, since that one may have begun before their writes ended.
 */
export const makeSyncs = (fail: (detail: string) => void) => {
  const running = new Map<Segment, Promise<void>>()
  const next = new Map<Segment, Promise<void>>()

  const syncNow = async (segment: Segment) => {
    try {
      await segment.file.datasync()
    } catch (cause) {
      // It is never tried again: the kernel may have dropped what it could not write.
      fail(`A sync of ext file ${segment.number} failed: ${String(cause)}`)
      throw cause
    }
  }
  const begin = (segment: Segment): Promise<void> => {
    const sync = syncNow(segment)
    running.set(segment, sync)
    const end = () => {
      if (running.get(segment) === sync) running.delete(segment)
    }
    sync.then(end, end)
    return sync
  }
  return (segment: Segment): Promise<void> => {
    const current = running.get(segment)
    if (!current) return begin(segment)
    const waiting = next.get(segment)
    if (waiting) return waiting
    const following = current
      .catch(() => undefined)
      .then(() => {
        next.delete(segment)
        return begin(segment)
      })
    next.set(segment, following)
    return following
  }
}
