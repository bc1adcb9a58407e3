/** A condition to wait for. A waiter checks its condition again after each notification. */

export interface Signal {
  readonly notify: () => void
  /** Resolves at the next `notify`. Check the condition first, and await nothing in between. */
  readonly wait: () => Promise<void>
}

export const makeSignal = (): Signal => {
  let next = Promise.withResolvers<void>()
  return {
    notify: () => {
      const now = next
      next = Promise.withResolvers<void>()
      now.resolve()
    },
    wait: () => next.promise,
  }
}
