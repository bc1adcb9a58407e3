/** Where a follower of the log last failed, and why. */
export const newStall = (position: () => number) => {
  let failed_at = position()
  let why: string | undefined
  return {
    /** Records a failure; returns whether the follower has moved since the last one. */
    fail: (detail: string) => {
      const has_moved = position() !== failed_at
      failed_at = position()
      why = detail
      return has_moved
    },
    /** Why it waits at its position; undefined once it has moved on. */
    waits: () => (position() === failed_at ? why : undefined),
  }
}

export type Stall = ReturnType<typeof newStall>
