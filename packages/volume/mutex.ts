/** Runs tasks one at a time, in order. A failed task does not stop later ones. */
export const makeMutex = () => {
  let last: Promise<unknown> = Promise.resolve()
  return {
    run: <A>(work: () => Promise<A>): Promise<A> => {
      const mine = last.then(work)
      last = mine.catch(() => undefined)
      return mine
    },
    /** Resolves when all submitted tasks have ended. */
    settled: async () => void (await last),
  }
}
