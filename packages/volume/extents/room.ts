/**
 * Which stretches of one file of extents are free, and how far it was ever written: what lies
 * behind that takes room of the disk when it is written. Pure; positions and lengths in bytes, all
 * of them multiples of a page.
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

/** Taking from free stretches whatever is long enough, and giving back. */
const makeFits = ({ free, indexOf, cut, join, bytes }: ReturnType<typeof makeFree>) => {
  /** No stretch is larger; it may be too high after some were taken. */
  let largest = bytes()

  const largestOf = () => {
    largest = free.reduce((most, stretch) => Math.max(most, sizeOf(stretch)), 0)
    return largest
  }
  /** The first place for so many bytes, or undefined where no stretch is as long. */
  const take = (wanted: number): number | undefined => {
    if (wanted > largest) return undefined
    const index = free.findIndex((stretch) => sizeOf(stretch) >= wanted)
    const stretch = free[index]
    if (!stretch) {
      largestOf()
      return undefined
    }
    return cut(index, stretch, { start: stretch.start, end: stretch.start + wanted }).start
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
  /** Takes exactly this; false where it is not all free. */
  const takeFree = (taken: Stretch): boolean => {
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
  return { take, takeMost, takeFree, give }
}

/**
 * The room of a file that was written up to the end of `given`, and may grow to `limit`. Its free
 * stretches are some thousands at 1 GiB and extents of 256 KiB: an array with binary search.
 */
export const makeRoom = (given: Stretch, limit = given.end) => {
  const stretches = makeFree(given)
  const { free } = stretches
  const { take, takeMost, takeFree, give } = makeFits(stretches)
  /** Up to here the file was written, and up to here it was or somebody is about to. */
  let written = given.end
  let reached = given.end

  /** Where the free stretch at the end of what was reached begins. */
  const tailStart = () => {
    const tail = free.at(-1)
    return tail?.end === reached ? tail.start : reached
  }
  const reach = (end: number) => {
    if (end <= reached) return
    give({ start: reached, end })
    reached = end
  }
  /** Takes exactly this; false where any of it is taken already, or behind the file's limit. */
  const takeAt = (taken: Stretch): boolean => {
    if (sizeOf(taken) === 0) return true
    if (taken.end > Math.max(limit, reached)) return false
    if (taken.end > reached && taken.start < tailStart()) return false
    reach(taken.end)
    return takeFree(taken)
  }
  /** Takes what a record names, as far as it is free, also where the file seemed to end before. */
  const takeKept = (stretch: Stretch) => {
    written = Math.max(written, stretch.end)
    reach(stretch.end)
    takeAt(stretch)
  }
  /** Gives back what was written; throws where some of it was free. */
  const giveWritten = (stretch: Stretch) => {
    written = Math.max(written, stretch.end)
    give(stretch)
  }
  /** A place for so many bytes where the file grows; undefined where it may not grow so far. */
  const takeNew = (bytes: number): number | undefined => {
    const start = tailStart()
    return takeAt({ start, end: start + bytes }) ? start : undefined
  }
  /** Gives back what nothing was written to: at the end it is as if nobody had reached for it. */
  const giveUnwritten = (stretch: Stretch) => {
    if (stretch.end !== reached || sizeOf(stretch) <= 0) return give(stretch)
    reached = Math.max(stretch.start, written)
    give({ start: stretch.start, end: reached })
  }
  return {
    take,
    takeMost,
    takeAt,
    takeKept,
    takeNew,
    giveUnwritten,
    give: giveWritten,
    freeBytes: stretches.bytes,
    /** Bytes by which the file may grow. */
    unreachedBytes: () => Math.max(0, limit - reached),
    /** Where what was ever written ends. */
    reached: () => reached,
    stretches: (): ReadonlyArray<Stretch> => free,
  }
}
export type Room = ReturnType<typeof makeRoom>
