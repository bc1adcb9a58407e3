/**
 * The bytes of one simulated file, as a reader and as the platter has them. A write is volatile
 * until a sync that started after it has ended; power loss keeps any of its sectors.
 */
import type { Seeded } from "../../../../test/world/seeded.ts"

/** The unit that a disk writes atomically, in bytes. */
export const sector_bytes = 512
/** The unit in which a file system allocates space, in bytes. */
export const block_bytes = 4096

interface Volatile {
  readonly position: number
  readonly bytes: Uint8Array
}

/** The allocated blocks of a file: those ever written. */
const makeBlocks = (given: ReadonlyArray<number> = []) => {
  const blocks = new Set(given)
  const missing = function* (position: number, length: number) {
    const end = Math.ceil((position + length) / block_bytes)
    for (let block = Math.floor(position / block_bytes); block < end; block++) {
      if (!blocks.has(block)) yield block
    }
  }
  return {
    bytes: () => block_bytes * blocks.size,
    all: () => [...blocks],
    cut: (size: number) => {
      for (const block of blocks) if (block * block_bytes >= size) blocks.delete(block)
    },
    take: (position: number, length: number) => {
      for (const block of missing(position, length)) blocks.add(block)
    },
    /** How many bytes of a write fit, with so much free space. */
    fitting: (position: number, length: number, room_bytes: number) => {
      let left = room_bytes
      for (const block of missing(position, length)) {
        left -= block_bytes
        if (left < 0) return Math.max(0, block * block_bytes - position)
      }
      return length
    },
  }
}

/** Growing bytes, initially zero. Copies its input before a change. */
const makeBytes = (from: Uint8Array = new Uint8Array(0)) => {
  let held = from
  let size = from.length
  let is_shared = true
  return {
    size: () => size,
    grow: (to: number) => {
      size = Math.max(size, to)
      if (size <= held.length) return
      const wider = new Uint8Array(Math.max(size, 2 * held.length))
      wider.set(held)
      held = wider
      is_shared = false
    },
    cut: (to: number) => {
      if (to >= size) return
      held = held.slice(0, to)
      size = to
      is_shared = false
    },
    put(bytes: Uint8Array, position: number) {
      this.grow(position + bytes.length)
      if (is_shared) held = held.slice()
      is_shared = false
      held.set(bytes, position)
    },
    /** A view, valid until the next write. */
    view: (position: number, length: number) =>
      held.subarray(Math.min(position, size), Math.min(position + length, size)),
    /** An immutable snapshot. */
    share: () => {
      is_shared = true
      return held.subarray(0, size)
    },
  }
}

/** The sectors of a write, as pieces. */
function* sectorsOf({ position, bytes }: Volatile): Generator<Volatile> {
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + sector_bytes - ((position + at) % sector_bytes))
    yield { position: position + at, bytes: bytes.subarray(at, end) }
    at = end
  }
}

/** The ways in which power loss keeps volatile writes. */
const survivals = ["none", "all", "prefix", "writes", "sectors"] as const

/** The pieces of volatile writes that survive power loss, oldest first. */
const survivors = (random: Seeded, writes: ReadonlyArray<Volatile>): ReadonlyArray<Volatile> => {
  const survival = random.pick<(typeof survivals)[number]>(survivals)
  if (survival === "none") return []
  if (survival === "all") return writes
  const share = random.pick([0.1, 0.5, 0.9])
  const isLucky = () => random.next() < share
  if (survival === "writes") return writes.filter(isLucky)
  if (survival === "sectors")
    return writes.flatMap((write) => [...sectorsOf(write)].filter(isLucky))
  const last = random.between(0, Math.max(0, writes.length - 1))
  const torn = writes.slice(last, last + 1).flatMap((write) => [...sectorsOf(write)])
  return [...writes.slice(0, last), ...torn.slice(0, random.between(0, torn.length))]
}

/** A file: `content` is on the platter, `unsynced` is not yet, and `seen` is what a reader gets. */
export const makeSimulatedFile = (
  random: Seeded,
  content?: Uint8Array,
  given?: ReadonlyArray<number>,
  seen: Uint8Array | undefined = content,
  unsynced: ReadonlyArray<Volatile> = [],
) => {
  const live = makeBytes(seen)
  const platter = makeBytes(content)
  const blocks = makeBlocks(given)
  let volatile: Array<Volatile> = [...unsynced]
  const persist = (writes: ReadonlyArray<Volatile>) => {
    for (const { bytes, position } of writes) platter.put(bytes, position)
  }

  return {
    size: live.size,
    /** Allocated space. */
    blockBytes: blocks.bytes,
    fitting: blocks.fitting,
    read: (position: number, length: number) => live.view(position, length).slice(),
    write: (bytes: Uint8Array, position: number) => {
      live.put(bytes, position)
      blocks.take(position, bytes.length)
      volatile.push({ bytes, position })
    },
    /** Durable at once, as a journal may make it before any sync. Pending writes are dropped. */
    truncate: (size: number) => {
      live.cut(size)
      platter.cut(size)
      blocks.cut(size)
      const cut = ({ position, bytes }: Volatile) => ({
        position,
        bytes: bytes.subarray(0, size - position),
      })
      volatile = volatile
        .filter(({ position }) => position < size)
        .map((write) => (write.position + write.bytes.length <= size ? write : cut(write)))
    },
    /** The writes that a sync makes durable if it starts now. `fails` loses some permanently. */
    beginSync: () => {
      const covered = new Set(volatile)
      return (fails: boolean) => {
        const writes = volatile.filter((write) => covered.has(write))
        volatile = volatile.filter((write) => !covered.has(write))
        persist(fails ? survivors(random, writes) : writes)
      }
    },
    /** Bytes damaged for readers and on the platter. */
    damage: (bytes: Uint8Array, position: number) => {
      live.put(bytes, position)
      platter.put(bytes, position)
      blocks.take(position, bytes.length)
    },
    /** After power loss: a new file with some of the pending volatile writes. */
    afterPowerLoss: () => {
      const kept = makeBytes(platter.share())
      for (const { bytes, position } of survivors(random, volatile)) kept.put(bytes, position)
      // A size may be durable before the bytes, which then read as zeros.
      if (random.next() < 1 / 4) kept.grow(live.size())
      return makeSimulatedFile(random, kept.share(), blocks.all())
    },
    /** After a kill: the same bytes, as volatile as before. */
    afterKill: () =>
      makeSimulatedFile(random, platter.share(), blocks.all(), live.share(), volatile),
  }
}

export type SimulatedFile = ReturnType<typeof makeSimulatedFile>
