/**
 * Allocates spans of the extent files for uploads and moves, and adds files. Space that was written
 * before comes first, because the disk has allocated it; more is taken only above the floor of free
 * space.
 */
import { isFull, thrown } from "#actors/blob-storage/blobs/fault.ts"
import type { ExtentFiles, FileState, Grant, States } from "../extents/files.ts"
import { page_bytes, type Stretch, toPages } from "../extents/room.ts"
import { data_start } from "../log/format.ts"
import type { Segments } from "../parts.ts"
import { type FreeSpace, unwatched } from "./gauge.ts"

interface GrantOptions {
  readonly segments: Segments
  readonly segment_bytes: number
  readonly space: FreeSpace
  /** Minimum length of a span, unless the whole blob fits, in bytes. */
  readonly stretch_bytes_min: number
}

/** Finds free spans, and adds files if there are none. */
const makeFinding = ({ all }: States, { segments, stretch_bytes_min }: GrantOptions) => {
  let adding: Promise<void> | undefined

  const grant = (state: FileState, stretch: Stretch): Grant | undefined => {
    if (!state.segment) return undefined
    const given = { segment: state.segment, start: stretch.start, end: stretch.end }
    state.reserved.set(stretch.start, given)
    return given
  }
  const takeFrom = (state: FileState, bytes: number, way: "take" | "takeNew") => {
    if (state.is_closed) return undefined
    const start = state.room[way](bytes)
    return start === undefined ? undefined : grant(state, { start, end: start + bytes })
  }
  const findIn = (bytes: number, way: "take" | "takeNew") => {
    for (const state of all()) {
      const taken = takeFrom(state, bytes, way)
      if (taken) return taken
    }
    return undefined
  }
  const findWritten = (bytes: number) => findIn(bytes, "take")
  /** Space that was written before comes first: the disk has allocated it. */
  const find = (bytes: number) => findWritten(bytes) ?? findIn(bytes, "takeNew")
  const findPart = (bytes: number) => {
    for (const state of all()) {
      const most = state.is_closed ? undefined : state.room.takeMost(stretch_bytes_min, bytes)
      const taken = most && grant(state, most)
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
  return { grant, find, findWritten, findPart, add, isAdding: () => adding !== undefined }
}

/** Changes to an allocation. */
const makeChanges = (
  of: States["of"],
  grant: ReturnType<typeof makeFinding>["grant"],
  space: FreeSpace,
): Pick<ExtentFiles, "extend" | "trim" | "release"> => {
  const stateOf = ({ segment }: Grant) => of(segment.number)
  const extend = (given: Grant, bytes: number): Grant | undefined => {
    const state = stateOf(given)
    const end = given.end + toPages(bytes)
    if (
      state.is_closed ||
      space.fault(space.promisedBytes()) ||
      !state.room.takeAt({ start: given.end, end })
    )
      return undefined
    return grant(state, { start: given.start, end })
  }
  const trim = (given: Grant, end: number): Grant => {
    const state = stateOf(given)
    const trimmed = { ...given, end }
    state.room.giveUnwritten({ start: end, end: given.end })
    state.reserved.set(given.start, trimmed)
    return trimmed
  }
  const release = (given: Grant) => {
    const state = stateOf(given)
    // The span may be owned by now, or be free again and another upload's.
    if (state.reserved.get(given.start) !== given) return
    state.reserved.delete(given.start)
    state.room.giveUnwritten({ start: given.start, end: given.end })
  }
  return { extend, trim, release }
}

/** What uploads reserve and release. */
export const makeGrants = (
  states: States,
  options: GrantOptions,
): Pick<ExtentFiles, "reserve" | "extend" | "trim" | "release" | "noteFull"> => {
  const { segment_bytes, space } = options
  const { of, all } = states
  const { grant, find, findWritten, findPart, add, isAdding } = makeFinding(states, options)
  /** Whether the disk had no space for a write. Then space written before is used up first. */
  let is_full = false

  const hasRoom = (bytes: number) =>
    all().some(
      ({ room, is_closed }) => !is_closed && room.freeBytes() + room.unreachedBytes() >= bytes,
    )
  /** Creates the next file in advance, if what is left would not fit another request like this. */
  const lookAhead = (bytes: number) => {
    if (hasRoom(bytes)) return
    // The upload that needs the space reports that there is none.
    add(bytes).catch(() => undefined)
  }
  /** Why the disk cannot provide what uploads have reserved, including this one. */
  const floorFault = async () => {
    await space.look()
    return space.fault(space.promisedBytes())
  }
  const reserve: ExtentFiles["reserve"] = async (wanted, { is_upkeep } = { is_upkeep: false }) => {
    const bytes = Math.max(page_bytes, Math.min(toPages(wanted), segment_bytes - data_start))
    const is_free = is_upkeep || space === unwatched
    const fault = is_free ? undefined : await floorFault()
    if (fault) {
      // Space that was written before allocates nothing on the disk.
      const written = space.fault(0) ? undefined : (findWritten(bytes) ?? findPart(bytes))
      if (written) return written
      throw thrown(fault)
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
        lookAhead(bytes)
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
  const { extend, trim, release } = makeChanges(of, grant, space)
  const noteFull = () => {
    is_full = true
  }
  return { reserve, extend, trim, release, noteFull }
}
