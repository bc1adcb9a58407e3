/**
 * An in-memory VolumeDisk driven by a seed: steps end in any order, any of them may be the last one
 * before power is lost or the process is killed, and any may fail, tear or be misdirected.
 *
 * Names are volatile until their folder is synced, as bytes are until their file is.
 */
import { basename, dirname } from "node:path"
import type { Seeded } from "../../../../test/world/seeded.ts"
import type { VolumeDisk, VolumeFile } from "../../disk.ts"
import { makeSimulatedFile, type SimulatedFile, sector_bytes } from "./file.ts"
import { makeNames, type NamesImage, type SimulatedNames } from "./names.ts"
import { type Fault, failure, makeSteps, type Steps } from "./steps.ts"

const page_bytes = 4096

/** A write that lands at `to` instead of `position`. */
export interface Astray {
  readonly path: string
  readonly position: number
  readonly to: number
  readonly bytes: Uint8Array
}

/** State shared by the disk's steps. */
interface World {
  readonly random: Seeded
  readonly names: SimulatedNames
  readonly steps: Steps
  capacity_bytes: number
  /** Bytes of the disk used by other programs. */
  others_bytes: number
  open_files: number
  /** Called before a misdirected write. */
  onAstray: (write: Astray) => void
  /** Number of future reads that return wrong bytes although those on disk are right. */
  misreads: number
}

const joined = (parts: ReadonlyArray<Uint8Array>) => {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

const usedBytes = ({ names }: World) =>
  [...names.files()].reduce((sum, file) => sum + file.blockBytes(), 0)

/** Free bytes on the disk; negative after it was shrunk. */
const freeBytes = (world: World) => world.capacity_bytes - world.others_bytes - usedBytes(world)

/** Target of a misdirected write: another page of the file, if any. */
const astray = (random: Seeded, file: SimulatedFile, position: number, length: number) => {
  const pages = Math.max(0, Math.floor((file.size() - length) / page_bytes))
  const other = page_bytes * random.between(0, pages)
  return other === position ? position + page_bytes : other
}

/** Writes what fits. Overwriting allocated blocks takes no space. */
const write = (world: World, file: SimulatedFile, bytes: Uint8Array, position: number) => {
  const is_bounded = world.capacity_bytes !== Number.POSITIVE_INFINITY
  const room = is_bounded ? freeBytes(world) : world.capacity_bytes
  const count = file.fitting(position, bytes.length, room)
  file.write(count === bytes.length ? bytes : bytes.subarray(0, count), position)
  if (count === bytes.length) return undefined
  return failure("ENOSPC", `${bytes.length} bytes at ${position}`)
}

const flipBit = (random: Seeded, bytes: Uint8Array) => {
  const at = random.between(0, bytes.length - 1)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << random.between(0, 7))
}

const read = (world: World, file: SimulatedFile, position: number, length: number) => {
  const bytes = file.read(position, length)
  if (world.misreads > 0 && bytes.length > 0) {
    world.misreads--
    flipBit(world.random, bytes)
  }
  return bytes
}

/** Copies the parts at the end of the write, which exposes changes made meanwhile. */
const writeStep = (
  world: World,
  file: SimulatedFile,
  path: string,
  parts: ReadonlyArray<Uint8Array>,
  position: number,
) => {
  const { random, steps } = world
  return steps.take({
    kind: "write",
    path: `${path} ${position}`,
    act: (fault?: Fault) => {
      const bytes = joined(parts)
      if (fault?.kind !== "misdirected") return write(world, file, bytes, position)
      const to = astray(random, file, position, bytes.length)
      // A file may have been renamed since it was opened.
      world.onAstray({ path: world.names.nameOf(file) ?? path, position, to, bytes })
      return write(world, file, bytes, to)
    },
    part: () => {
      const bytes = joined(parts)
      const sectors = random.between(0, Math.ceil(bytes.length / sector_bytes))
      write(world, file, bytes.subarray(0, sectors * sector_bytes), position)
    },
  })
}

const opened = (world: World, path: string, file: SimulatedFile): VolumeFile => {
  const { steps } = world
  let is_open = true
  world.open_files++
  const checkOpen = () => {
    if (!is_open) throw failure("EBADF", path)
  }
  return {
    write: async (parts, position) => {
      checkOpen()
      await writeStep(world, file, path, parts, position)
    },
    read: (position, length, into) =>
      steps.ask(() => {
        checkOpen()
        const bytes = read(world, file, position, length)
        if (into === undefined) return bytes
        into.set(bytes)
        return into.subarray(0, bytes.length)
      }),
    readSync: (position, length) => {
      checkOpen()
      return read(world, file, position, length)
    },
    datasync: async () => {
      checkOpen()
      const end = file.beginSync()
      const act = () => {
        end(false)
        return undefined
      }
      // Power loss keeps any part of what is volatile anyway, and a kill removes nothing.
      const part = () => {}
      await steps.take({ kind: "datasync", path, act, part, fail: () => end(true) })
    },
    truncate: async (bytes) => {
      checkOpen()
      const act = () => {
        file.truncate(bytes)
        return undefined
      }
      const part = () => {
        if (world.random.next() < 1 / 2) act()
      }
      await steps.take({ kind: "truncate", path, act, part })
    },
    size: () => steps.ask(file.size),
    close: () =>
      steps.ask(() => {
        checkOpen()
        is_open = false
        world.open_files--
      }),
  }
}

const diskOf = (world: World): VolumeDisk => {
  const { names, steps, random } = world
  const take = (kind: "create" | "rename" | "remove" | "syncFolder", path: string) => {
    const maybe = (act: () => unknown) => () => {
      if (random.next() < 1 / 2) act()
    }
    return (act: () => Error | undefined) => steps.take({ kind, path, act, part: maybe(act) })
  }
  return {
    makeFolder: () => steps.ask(() => {}),
    create: async (path) => {
      const file = makeSimulatedFile(random)
      await take(
        "create",
        path,
      )(() => {
        const is_full = freeBytes(world) <= 0
        return is_full ? failure("ENOSPC", path) : names.add(path, file)
      })
      return opened(world, path, file)
    },
    open: (path) =>
      steps.ask(() => {
        const file = names.find(path)
        if (file === undefined) throw failure("ENOENT", path)
        return opened(world, path, file)
      }),
    rename: (from, to) => take("rename", `${from} to ${to}`)(() => names.rename(from, to)),
    remove: (path) => take("remove", path)(() => names.remove(path)),
    names: (folder) =>
      steps.ask(() =>
        names
          .paths()
          .filter((path) => dirname(path) === folder)
          .map((path) => basename(path)),
      ),
    syncFolder: (folder) => take("syncFolder", folder)(() => names.sync(folder)),
    // Not a step, because it changes nothing.
    space: async () => ({
      free_bytes: Math.max(0, freeBytes(world)),
      total_bytes: world.capacity_bytes,
    }),
  }
}

/** A disk, empty or as a crash left another one. */
export const simulateDisk = (random: Seeded, image?: NamesImage) => {
  const names = makeNames(random, image)
  const steps = makeSteps(random)
  const world: World = {
    random,
    names,
    steps,
    capacity_bytes: Number.POSITIVE_INFINITY,
    others_bytes: 0,
    open_files: 0,
    misreads: 0,
    onAstray: () => {},
  }
  const found = (path: string) => {
    const file = names.find(path)
    if (file === undefined) throw failure("ENOENT", path)
    return file
  }
  return {
    disk: diskOf(world),
    /** Number of steps started. */
    steps: steps.count,
    /** Makes the step of that number fail, counted from 1 from now on. */
    plan: steps.plan,
    /** The planned faults that were met, as text. */
    faults: steps.faults,
    /** Resolves on power loss or kill. Operations in progress never end. */
    end: steps.end,
    stop: steps.stop,
    /** Maximum bytes of all files together. */
    limit: (bytes: number) => {
      world.capacity_bytes = bytes
    },
    /** Lets other programs use this many bytes of the disk. */
    others: (bytes: number) => {
      world.others_bytes = bytes
    },
    usedBytes: () => usedBytes(world),
    freeBytes: () => freeBytes(world),
    openFiles: () => world.open_files,
    paths: names.paths,
    bytes: (path: string) => found(path).read(0, found(path).size()),
    /** Changes bytes of a file on disk. */
    damage: (path: string, bytes: Uint8Array, position: number) =>
      found(path).damage(bytes, position),
    /** Calls the listener before each misdirected write. */
    onAstray: (listener: (write: Astray) => void) => {
      world.onAstray = listener
    },
    /** Makes this many reads return one flipped bit, although the bytes on disk are right. */
    misread: (reads: number) => {
      world.misreads = reads
    },
    /** The disk as found after its crash. */
    after: () => {
      const left = steps.ended() === "power" ? names.afterPowerLoss() : names.afterKill()
      return simulateDisk(random, left)
    },
  }
}

export type SimulatedDisk = ReturnType<typeof simulateDisk>
