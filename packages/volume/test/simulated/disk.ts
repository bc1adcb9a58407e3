/**
 * A VolumeDisk in memory that a seed alone decides: steps end in any order, any of them may be the
 * last one before power is lost or the process is killed, and any may fail, tear or go astray.
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

/** What the disk's steps share. */
interface World {
  readonly random: Seeded
  readonly names: SimulatedNames
  readonly steps: Steps
  capacity_bytes: number
  /** Bytes of the disk that other programs have. */
  others_bytes: number
  open_files: number
  /** Told of a write that will land elsewhere, before it does. */
  onAstray: (write: Astray) => void
  /** Reads to come that answer wrongly though the bytes at rest are right. */
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

/** What the disk has free; less than nothing once it was made smaller. */
const freeBytes = (world: World) => world.capacity_bytes - world.others_bytes - usedBytes(world)

/** Where a misdirected write lands: another page of the same file, where it has one. */
const astray = (random: Seeded, file: SimulatedFile, position: number, length: number) => {
  const pages = Math.max(0, Math.floor((file.size() - length) / page_bytes))
  const other = page_bytes * random.between(0, pages)
  return other === position ? position + page_bytes : other
}

/** Writes what there is room for: a write into blocks that the file has already needs none. */
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

/** Takes the parts when the write ends, so that whoever changes them meanwhile is found out. */
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
    readNow: (position, length) => {
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
      // Power loss keeps any part of what is volatile anyhow, and a kill takes nothing away.
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
    // As a call that the seed does not order: it changes nothing.
    space: async () => ({
      free_bytes: Math.max(0, freeBytes(world)),
      total_bytes: world.capacity_bytes,
    }),
  }
}

/** A disk, empty or as another was left by its end. */
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
    /** Steps that were begun. */
    steps: steps.count,
    /** Lets the step of that number, counted from 1 from now on, go wrong. */
    plan: steps.plan,
    /** Which planned faults were met, for people. */
    told: steps.told,
    /** Resolves when power was lost or the process killed: whatever is under way never ends. */
    end: steps.end,
    stop: steps.stop,
    /** Bytes of all files together at most. */
    limit: (bytes: number) => {
      world.capacity_bytes = bytes
    },
    /** Lets other programs have so many bytes of the disk. */
    others: (bytes: number) => {
      world.others_bytes = bytes
    },
    usedBytes: () => usedBytes(world),
    freeBytes: () => freeBytes(world),
    openFiles: () => world.open_files,
    paths: names.paths,
    bytes: (path: string) => found(path).read(0, found(path).size()),
    /** Changes bytes of a file where they lie. */
    damage: (path: string, bytes: Uint8Array, position: number) =>
      found(path).damage(bytes, position),
    /** Is told of each write that lands elsewhere, just before it does. */
    onAstray: (hear: (write: Astray) => void) => {
      world.onAstray = hear
    },
    /** Lets so many reads answer with one bit flipped, though the bits at rest are right. */
    misread: (reads: number) => {
      world.misreads = reads
    },
    /** The disk as it is found after its end. */
    after: () => {
      const left = steps.ended() === "power" ? names.afterPowerLoss() : names.afterKill()
      return simulateDisk(random, left)
    },
  }
}

export type SimulatedDisk = ReturnType<typeof simulateDisk>
