/** Work that is done one piece after the other, whatever comes of each. */
export const makeTurns = () => {
  let last: Promise<unknown> = Promise.resolve()
  return {
    run: <A>(work: () => Promise<A>): Promise<A> => {
      const mine = last.then(work)
      last = mine.catch(() => undefined)
      return mine
    },
    /** Resolves when all that was asked for is done. */
    settled: async () => void (await last),
  }
}
