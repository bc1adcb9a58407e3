/**
 * The free space of one extent file, and how far the file was ever written: writes after that
 * allocate disk space. Pure; positions and lengths in bytes, multiples of a page.
 */

/**
 * Extents start and end on a page boundary, so that no two share a page, the unit of a disk write.
 */
export const page_bytes = 4096

export const toPages = (bytes: number) => Math.ceil(bytes / page_bytes) * page_bytes

export interface Span {
  readonly start: number
  readonly end: number
}

const sizeOf = ({ start, end }: Span) => end - start

/** Free spans, sorted, with neighbours merged. */
const makeFree = (initial: Span) => {
  const free: Array<Span> = sizeOf(initial) > 0 ? [initial] : []
  let bytes = sizeOf(initial)

  /** The first span that ends after the position. */
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
  /** Takes a part out of a span. */
  const cut = (index: number, span: Span, taken: Span) => {
    const before = { start: span.start, end: taken.start }
    const after = { start: taken.end, end: span.end }
    free.splice(index, 1, ...[before, after].filter((rest) => sizeOf(rest) > 0))
    bytes -= sizeOf(taken)
    return taken
  }
  /** Adds a span and returns the merged one. Throws if any of it was free already. */
  const join = ({ start, end }: Span): Span => {
    const index = indexOf(start)
    const next = free[index]
    const before = free[index - 1]
    if (next && next.start < end) throw new Error(`bytes ${start} to ${end} are free already`)
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

/** Allocates fitting spans, and frees them. */
const makeFits = ({ free, indexOf, cut, join, bytes }: ReturnType<typeof makeFree>) => {
  /** Upper bound of the longest span: may be too high after an allocation. */
  let largest = bytes()

  const largestOf = () => {
    largest = free.reduce((most, span) => Math.max(most, sizeOf(span)), 0)
    return largest
  }
  /** First fit for the wanted bytes. Undefined if no span is long enough. */
  const take = (wanted: number): number | undefined => {
    if (wanted > largest) return undefined
    const index = free.findIndex((span) => sizeOf(span) >= wanted)
    const span = free[index]
    if (!span) {
      largestOf()
      return undefined
    }
    return cut(index, span, { start: span.start, end: span.start + wanted }).start
  }
  /**
   * Takes the longest span of at least `least` bytes, cut to `most`. Undefined if there is none.
   */
  const takeMost = (least: number, most: number): Span | undefined => {
    const size = largestOf()
    if (size < least || size === 0) return undefined
    const index = free.findIndex((span) => sizeOf(span) === size)
    const span = free[index]
    if (!span) return undefined
    const end = span.start + Math.min(size, most)
    return cut(index, span, { start: span.start, end })
  }
  /** Takes exactly this span. False if any of it is not free. */
  const takeFree = (taken: Span): boolean => {
    const index = indexOf(taken.start)
    const span = free[index]
    if (!span || span.start > taken.start || span.end < taken.end) return false
    cut(index, span, taken)
    return true
  }
  /** Frees a taken span. Throws if any of it was free. */
  const release = (span: Span) => {
    if (sizeOf(span) <= 0) return
    largest = Math.max(largest, sizeOf(join(span)))
  }
  return { take, takeMost, takeFree, release }
}

/**
 * The free space of a file that was written up to the end of `initial`, and may grow to `limit`.
 * With 1 GiB and extents of 256 KiB there are a few thousand spans, for which an array with binary
 * search is enough.
 */
export const makeFreeMap = (initial: Span, limit = initial.end) => {
  const spans = makeFree(initial)
  const { free } = spans
  const { take, takeMost, takeFree, release } = makeFits(spans)
  /** The end of the written part, and the end of the written or allocated part. */
  let written = initial.end
  let allocated_end = initial.end

  /** Start of the free span at the end of the allocated part. */
  const tailStart = () => {
    const tail = free.at(-1)
    return tail?.end === allocated_end ? tail.start : allocated_end
  }
  const reach = (end: number) => {
    if (end <= allocated_end) return
    release({ start: allocated_end, end })
    allocated_end = end
  }
  /** Takes exactly this span. False if any of it is taken, or after the file's limit. */
  const takeAt = (taken: Span): boolean => {
    if (sizeOf(taken) === 0) return true
    if (taken.end > Math.max(limit, allocated_end)) return false
    if (taken.end > allocated_end && taken.start < tailStart()) return false
    reach(taken.end)
    return takeFree(taken)
  }
  /**
   * Takes the free part of a span that a record refers to, even if the file seemed to end before
   * it.
   */
  const takeOwned = (span: Span) => {
    written = Math.max(written, span.end)
    reach(span.end)
    takeAt(span)
  }
  /** Frees a written span. Throws if any of it was free. */
  const releaseWritten = (span: Span) => {
    written = Math.max(written, span.end)
    release(span)
  }
  /** Allocates at the end of the file. Undefined if the file may not grow that far. */
  const takeNew = (bytes: number): number | undefined => {
    const start = tailStart()
    return takeAt({ start, end: start + bytes }) ? start : undefined
  }
  /** Frees an unwritten span. At the end of the file this undoes its growth. */
  const releaseUnwritten = (span: Span) => {
    if (span.end !== allocated_end || sizeOf(span) <= 0) return release(span)
    allocated_end = Math.max(span.start, written)
    release({ start: span.start, end: allocated_end })
  }
  return {
    take,
    takeMost,
    takeAt,
    takeOwned,
    takeNew,
    releaseUnwritten,
    release: releaseWritten,
    freeBytes: spans.bytes,
    /** Bytes by which the file may grow. */
    unreachedBytes: () => Math.max(0, limit - allocated_end),
    /** The end of the part that was ever written or allocated. */
    reached: () => allocated_end,
    spans: (): ReadonlyArray<Span> => free,
  }
}
export type FreeMap = ReturnType<typeof makeFreeMap>
