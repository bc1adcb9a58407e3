/**
 * Writes past the page cache, for bytes that begin with a page in memory and in the file. Of 16 MiB
 * measured in processor time: 1.1 ms instead of 3.4 where blocks are overwritten, 2 instead of 6 to
 * 30 where a file grows. Linux alone has them, and not on every file system.
 */
import fs from "node:fs"
import { codeOf } from "#actors/blob-storage/blobs/fault.ts"
import { isPaged } from "./memory.ts"

const page_bytes = 4096
/**
 * Direct writes of the process under way. Each keeps one of libuv's four threads until the disk has
 * it, while a write into the page cache is soon over: the log's syncs, and reads, need the others.
 */
const writes_max = 2

/** Undefined where the system, or the file system, has no such writes. */
const openDirect = async (fd: number): Promise<number | undefined> => {
  const { O_DIRECT, O_WRONLY } = fs.constants
  // On other systems than Linux it is not there, whatever the types say.
  if ((O_DIRECT as number | undefined) === undefined) return undefined
  return new Promise((resolve) => {
    // The same file, also where its name has changed.
    fs.open(`/proc/self/fd/${fd}`, O_WRONLY | O_DIRECT, (error, direct) =>
      resolve(error === null ? direct : undefined),
    )
  })
}

const writeOnce = (fd: number, parts: ReadonlyArray<Uint8Array>, position: number) =>
  new Promise<number>((resolve, reject) => {
    fs.writev(fd, parts, position, (error, written) => {
      if (error === null) resolve(written)
      else if (codeOf(error) === "EINVAL") resolve(0)
      else reject(error)
    })
  })

/** Runs so many at once, and the others in their order. */
const makeLanes = (count: number) => {
  const waiting: Array<() => void> = []
  let free = count
  return async <A>(work: () => Promise<A>): Promise<A> => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free += 1
    }
  }
}
const inLane = makeLanes(writes_max)

/** The direct writes of an open file. */
export const makeDirect = (fd: number) => {
  let opening: Promise<number | undefined> | undefined
  let is_refused = false
  return {
    /** Writes what may be written so of the first parts, and answers how many bytes it was. */
    write: async (parts: ReadonlyArray<Uint8Array>, position: number): Promise<number> => {
      const end = parts.findIndex((part) => !isPaged(part))
      const paged = end < 0 ? parts : parts.slice(0, end)
      if (paged.length === 0 || position % page_bytes !== 0 || is_refused) return 0
      opening ??= openDirect(fd)
      const direct = await opening
      if (direct === undefined) return 0
      return inLane(async () => {
        // It was closed meanwhile, or another write was refused.
        if (is_refused) return 0
        const written = await writeOnce(direct, paged, position)
        is_refused ||= written === 0
        return written
      })
    },
    close: async () => {
      is_refused = true
      const direct = await opening
      if (direct !== undefined) fs.closeSync(direct)
    },
  }
}
