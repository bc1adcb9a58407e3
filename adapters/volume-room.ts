/**
 * Which stretches of one file of extents are free. Pure; positions and lengths in bytes, all of
 * them multiples of a page.
 */

/** Extents begin and end with a page, so that no two of them share what a disk writes at once. */
export const page_bytes = 4096

export const toPages = (bytes: number) => Math.ceil(bytes / page_bytes) * page_bytes

export interface Stretch {
  readonly start: number
  readonly end: number
}

const sizeOf = ({ start, end }: Stretch) => end - start

/** Free stretches, sorted, with neighbours joined. */
const makeFree = (given: Stretch) => {
  const free: Array<Stretch> = sizeOf(given) > 0 ? [given] : []
  let bytes = sizeOf(given)

  /** The first stretch that ends behind the position. */
  const indexOf = (position: number) => {
    let low = 0
    let high = free.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((free[middle]?.end ?? 0) <= position) low = middle + 1
      else high = middle
    }
    return low
  }
  /** Takes a part of a stretch out. */
  const cut = (index: number, stretch: Stretch, taken: Stretch) => {
    const before = { start: stretch.start, end: taken.start }
    const after = { start: taken.end, end: stretch.end }
    free.splice(index, 1, ...[before, after].filter((rest) => sizeOf(rest) > 0))
    bytes -= sizeOf(taken)
    return taken
  }
  /** Puts a stretch in; answers what it is joined to. Throws where some of it was in. */
  const join = ({ start, end }: Stretch): Stretch => {
    const index = indexOf(start)
    const next = free[index]
    const before = free[index - 1]
    if (next && next.start < end) throw new Error(`bytes ${start} to ${end} were free already`)
    const joins_before = before?.end === start
    const joins_next = next?.start === end
    const joined = {
      start: joins_before ? before.start : start,
      end: joins_next ? next.end : end,
    }
    free.splice(joins_before ? index - 1 : index, Number(joins_before) + Number(joins_next), joined)
    bytes += end - start
    return joined
  }
  return { free, indexOf, cut, join, bytes: () => bytes }
}

/**
 * The free stretches of a file, `given` at first. At 1 GiB and extents of 256 KiB at least these
 * are some thousands: an array with binary search.
 */
export const makeRoom = (given: Stretch) => {
  const { free, indexOf, cut, join, bytes: freeBytes } = makeFree(given)
  /** No stretch is larger; it may be too high after some were taken. */
  let largest = freeBytes()

  const largestOf = () => {
    largest = free.reduce((most, stretch) => Math.max(most, sizeOf(stretch)), 0)
    return largest
  }
  /** The first place for so many bytes, or undefined where no stretch is as long. */
  const take = (bytes: number): number | undefined => {
    if (bytes > largest) return undefined
    const index = free.findIndex((stretch) => sizeOf(stretch) >= bytes)
    const stretch = free[index]
    if (!stretch) {
      largestOf()
      return undefined
    }
    return cut(index, stretch, { start: stretch.start, end: stretch.start + bytes }).start
  }
  /** The longest stretch of `least` bytes or more, cut to `most`; undefined where there is none. */
  const takeMost = (least: number, most: number): Stretch | undefined => {
    const size = largestOf()
    if (size < least || size === 0) return undefined
    const index = free.findIndex((stretch) => sizeOf(stretch) === size)
    const stretch = free[index]
    if (!stretch) return undefined
    const end = stretch.start + Math.min(size, most)
    return cut(index, stretch, { start: stretch.start, end })
  }
  /** Takes exactly this; false where any of it is taken already. */
  const takeAt = (taken: Stretch): boolean => {
    if (sizeOf(taken) === 0) return true
    const index = indexOf(taken.start)
    const stretch = free[index]
    if (!stretch || stretch.start > taken.start || stretch.end < taken.end) return false
    cut(index, stretch, taken)
    return true
  }
  /** Gives back what was taken; throws where some of it was free. */
  const give = (stretch: Stretch) => {
    if (sizeOf(stretch) <= 0) return
    largest = Math.max(largest, sizeOf(join(stretch)))
  }
  const stretches = (): ReadonlyArray<Stretch> => free
  return { take, takeMost, takeAt, give, freeBytes, stretches }
}
export type Room = ReturnType<typeof makeRoom>
