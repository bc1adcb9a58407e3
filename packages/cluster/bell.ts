/** A bell: who waits is woken by the next ring, and looks again for what was waited for. */

export interface Bell {
  readonly ring: () => void
  /** Resolves with the next ring. Look first, then wait, with nothing between the two. */
  readonly heard: () => Promise<void>
}

export const makeBell = (): Bell => {
  let next = Promise.withResolvers<void>()
  return {
    ring: () => {
      const now = next
      next = Promise.withResolvers<void>()
      now.resolve()
    },
    heard: () => next.promise,
  }
}
