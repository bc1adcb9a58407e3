/**
 * The bytes of one simulated file, as a reader sees them and as the platter has them. A write is
 * volatile until a sync that began after it has ended; power loss keeps any sectors of it.
 */
import type { Seeded } from "../process/seeded.ts"

/** What a disk writes whole or not at all, in bytes. */
export const sector_bytes = 512

interface Volatile {
  readonly position: number
  readonly bytes: Uint8Array
}

/** Bytes that grow; what was never written is zero. */
const makeBytes = (from: Uint8Array = new Uint8Array(0)) => {
  let held = from
  let size = from.length
  return {
    size: () => size,
    grow: (to: number) => {
      size = Math.max(size, to)
      if (size <= held.length) return
      const wider = new Uint8Array(Math.max(size, 2 * held.length))
      wider.set(held)
      held = wider
    },
    put(bytes: Uint8Array, position: number) {
      this.grow(position + bytes.length)
      held.set(bytes, position)
    },
    /** A view, until the next write. */
    view: (position: number, length: number) =>
      held.subarray(Math.min(position, size), Math.min(position + length, size)),
    copy: () => held.slice(0, size),
    /** The bytes themselves, for who is the only one to use them from now on. */
    take: () => held.subarray(0, size),
  }
}

/** The sectors of a write, each as a piece of it. */
function* sectorsOf({ position, bytes }: Volatile): Generator<Volatile> {
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + sector_bytes - ((position + at) % sector_bytes))
    yield { position: position + at, bytes: bytes.subarray(at, end) }
    at = end
  }
}

/** Which volatile writes power loss leaves on the platter, in how many different ways. */
const survivals = ["none", "all", "prefix", "writes", "sectors"] as const

/** The pieces of volatile writes that power loss leaves on the platter, oldest first. */
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
  seen: Uint8Array | undefined = content?.slice(),
  unsynced: ReadonlyArray<Volatile> = [],
) => {
  const live = makeBytes(seen)
  const platter = makeBytes(content)
  let volatile: Array<Volatile> = [...unsynced]
  const persist = (writes: ReadonlyArray<Volatile>) => {
    for (const { bytes, position } of writes) platter.put(bytes, position)
  }

  return {
    size: live.size,
    read: (position: number, length: number) => live.view(position, length).slice(),
    write: (bytes: Uint8Array, position: number) => {
      live.put(bytes, position)
      volatile.push({ bytes, position })
    },
    /** What a sync that begins now makes durable at its end; `fails` loses some of it for good. */
    beginSync: () => {
      const covered = new Set(volatile)
      return (fails: boolean) => {
        const writes = volatile.filter((write) => covered.has(write))
        volatile = volatile.filter((write) => !covered.has(write))
        persist(fails ? survivors(random, writes) : writes)
      }
    },
    /** Bytes that lie there damaged, for readers and on the platter. */
    damage: (bytes: Uint8Array, position: number) => {
      live.put(bytes, position)
      platter.put(bytes, position)
    },
    /** After power loss: another file, with whatever of the volatile writes was on its way. */
    afterPowerLoss: () => {
      const kept = makeBytes(platter.copy())
      for (const { bytes, position } of survivors(random, volatile)) kept.put(bytes, position)
      // A size may be durable before the bytes are: they read as zeros then.
      if (random.next() < 1 / 4) kept.grow(live.size())
      return makeSimulatedFile(random, kept.take())
    },
    /** After the process alone was killed: the same bytes, as volatile as they were. */
    afterKill: () => makeSimulatedFile(random, platter.copy(), live.copy(), volatile),
  }
}

export type SimulatedFile = ReturnType<typeof makeSimulatedFile>
