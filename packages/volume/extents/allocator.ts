/**
 * Allocates spans of the extent files for uploads and moves, and adds files. Space that was written
 * before comes first, because the disk has allocated it; more is taken only above the floor of free
 * space.
 */
import { faultError, isFull } from "#actors/blob-storage/ports/fault.ts"
import { type FreeSpace, unmonitored } from "../free-space/gauge.ts"
import { data_start } from "../log/format.ts"
import type { Segments } from "../parts.ts"
import type { Allocation, ExtentFiles, FileState, States } from "./files.ts"
import { page_bytes, type Span, toPages } from "./free-map.ts"

interface AllocatorOptions {
  readonly segments: Segments
  readonly segment_bytes: number
  readonly space: FreeSpace
  /** Minimum length of a span, unless the whole blob fits, in bytes. */
  readonly span_bytes_min: number
}

/** Finds free spans, and adds files if there are none. */
const makeFinder = ({ all }: States, { segments, span_bytes_min }: AllocatorOptions) => {
  let adding: Promise<void> | undefined

  const allocate = (state: FileState, span: Span): Allocation | undefined => {
    if (!state.segment) return undefined
    const allocation = { segment: state.segment, start: span.start, end: span.end }
    state.reserved.set(span.start, allocation)
    return allocation
  }
  const takeFrom = (state: FileState, bytes: number, method: "take" | "takeNew") => {
    if (state.is_closed) return undefined
    const start = state.free_map[method](bytes)
    return start === undefined ? undefined : allocate(state, { start, end: start + bytes })
  }
  const findIn = (bytes: number, method: "take" | "takeNew") => {
    for (const state of all()) {
      const taken = takeFrom(state, bytes, method)
      if (taken) return taken
    }
    return undefined
  }
  const findWritten = (bytes: number) => findIn(bytes, "take")
  /** Space that was written before comes first: the disk has allocated it. */
  const find = (bytes: number) => findWritten(bytes) ?? findIn(bytes, "takeNew")
  const findPart = (bytes: number) => {
    for (const state of all()) {
      const most = state.is_closed ? undefined : state.free_map.takeMost(span_bytes_min, bytes)
      const taken = most && allocate(state, most)
      if (taken) return taken
    }
    return undefined
  }
  const add = (bytes: number) => {
    const work = async () => {
      await segments.take("ext", bytes)
    }
    const end = () => {
      adding = undefined
    }
    adding ??= work().finally(end)
    return adding
  }
  return { allocate, find, findWritten, findPart, add, isAdding: () => adding !== undefined }
}

/** Changes to an allocation. */
const makeChanges = (
  of: States["of"],
  allocate: ReturnType<typeof makeFinder>["allocate"],
  space: FreeSpace,
): Pick<ExtentFiles, "extend" | "trim" | "release"> => {
  const stateOf = ({ segment }: Allocation) => of(segment.number)
  const extend = (allocation: Allocation, bytes: number): Allocation | undefined => {
    const state = stateOf(allocation)
    const end = allocation.end + toPages(bytes)
    if (
      state.is_closed ||
      space.fault(space.reservedBytes()) ||
      !state.free_map.takeAt({ start: allocation.end, end })
    )
      return undefined
    return allocate(state, { start: allocation.start, end })
  }
  const trim = (allocation: Allocation, end: number): Allocation => {
    const state = stateOf(allocation)
    const trimmed = { ...allocation, end }
    state.free_map.releaseUnwritten({ start: end, end: allocation.end })
    state.reserved.set(allocation.start, trimmed)
    return trimmed
  }
  const release = (allocation: Allocation) => {
    const state = stateOf(allocation)
    // The span may already be owned, or free and reserved for another upload.
    if (state.reserved.get(allocation.start) !== allocation) return
    state.reserved.delete(allocation.start)
    state.free_map.releaseUnwritten({ start: allocation.start, end: allocation.end })
  }
  return { extend, trim, release }
}

/** Reservations of uploads. */
export const makeAllocator = (
  states: States,
  options: AllocatorOptions,
): Pick<ExtentFiles, "reserve" | "extend" | "trim" | "release" | "noteFull"> => {
  const { segment_bytes, space } = options
  const { of, all } = states
  const { allocate, find, findWritten, findPart, add, isAdding } = makeFinder(states, options)
  /** Whether the disk had no space for a write. Then space written before is used up first. */
  let is_full = false

  const hasSpace = (bytes: number) =>
    all().some(
      ({ free_map, is_closed }) =>
        !is_closed && free_map.freeBytes() + free_map.unreachedBytes() >= bytes,
    )
  /**
   * Creates the next file in advance, if the remaining space would not fit another request like
   * this.
   */
  const growAhead = (bytes: number) => {
    if (hasSpace(bytes)) return
    // The upload that needs the space reports the failure.
    add(bytes).catch(() => undefined)
  }
  /** Why the disk cannot provide the space that uploads, including this one, have reserved. */
  const floorFault = async () => {
    await space.refresh()
    return space.fault(space.reservedBytes())
  }
  const reserve: ExtentFiles["reserve"] = async (wanted, { is_upkeep } = { is_upkeep: false }) => {
    const bytes = Math.max(page_bytes, Math.min(toPages(wanted), segment_bytes - data_start))
    const is_free = is_upkeep || space === unmonitored
    const fault = is_free ? undefined : await floorFault()
    if (fault) {
      // Space that was written before allocates nothing on the disk.
      const written = space.fault(0) ? undefined : (findWritten(bytes) ?? findPart(bytes))
      if (written) return written
      throw faultError(fault)
    }
    if (is_full) {
      const written = findWritten(bytes) ?? findPart(bytes)
      if (written) return written
      is_full = false
    }
    // The creation in progress may have started when the disk was full.
    let is_joined = isAdding()
    for (;;) {
      const found = find(bytes)
      if (found) {
        growAhead(bytes)
        return found
      }
      try {
        await add(bytes)
      } catch (cause) {
        const part = isFull(cause) ? findPart(bytes) : undefined
        if (part) return part
        if (!isFull(cause) || !is_joined) throw cause
        is_joined = false
      }
    }
  }
  const { extend, trim, release } = makeChanges(of, allocate, space)
  const noteFull = () => {
    is_full = true
  }
  return { reserve, extend, trim, release, noteFull }
}
