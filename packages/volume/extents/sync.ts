/** Syncs of extent files, shared by concurrent callers. */
import type { Segment } from "../parts.ts"

/**
 * Returns a function that makes everything written to a file before the call durable. Calls during
 * a sync share the next one, because the current one may have started before their writes ended.
 */
export const makeSyncs = (fail: (detail: string) => void) => {
  const running = new Map<Segment, Promise<void>>()
  const next = new Map<Segment, Promise<void>>()

  const syncNow = async (segment: Segment) => {
    try {
      await segment.file.datasync()
    } catch (cause) {
      // Never retried: the kernel may have dropped the pages that it could not write.
      fail(`A sync of extent file ${segment.number} failed: ${String(cause)}`)
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
