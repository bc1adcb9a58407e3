/** The names on a simulated disk: a change is volatile until its folder is synced. */
import { dirname } from "node:path"
import type { Seeded } from "../../../../test/world/seeded.ts"
import type { SimulatedFile } from "./file.ts"
import { failure } from "./steps.ts"

interface Change {
  readonly folder: string
  readonly from?: string
  readonly to?: string
  readonly file: SimulatedFile
}

type Names = Map<string, SimulatedFile>

export interface NamesImage {
  readonly live: Names
  readonly synced: Names
  readonly changes: ReadonlyArray<Change>
}

const apply = (names: Names, { from, to, file }: Change) => {
  if (from !== undefined && names.get(from) === file) names.delete(from)
  if (to !== undefined) names.set(to, file)
}

/** Each file once, with any number of names. */
const onceEach = (map: (file: SimulatedFile) => SimulatedFile) => {
  const made = new Map<SimulatedFile, SimulatedFile>()
  return (file: SimulatedFile) => {
    const other = made.get(file) ?? map(file)
    made.set(file, other)
    return other
  }
}

const mapped = (names: Names, map: (file: SimulatedFile) => SimulatedFile): Names =>
  new Map([...names].map(([name, file]) => [name, map(file)]))

export const makeNames = (random: Seeded, image?: NamesImage) => {
  const live: Names = new Map(image?.live)
  const synced: Names = new Map(image?.synced)
  let changes: ReadonlyArray<Change> = image?.changes ?? []
  const change = (made: Change) => {
    apply(live, made)
    changes = [...changes, made]
  }
  /** Usually the first changes, as a journaling file system keeps them; sometimes any of them. */
  const left = (): Names => {
    const names = new Map(synced)
    const first = random.between(0, changes.length)
    const is_any = random.next() < 1 / 4
    for (const [index, made] of changes.entries()) {
      if (is_any ? random.next() < 1 / 2 : index < first) apply(names, made)
    }
    return names
  }

  return {
    find: (path: string) => live.get(path),
    nameOf: (file: SimulatedFile) => [...live].find(([, other]) => other === file)?.[0],
    paths: (): ReadonlyArray<string> => [...live.keys()],
    files: () => new Set(live.values()),
    add: (path: string, file: SimulatedFile) => {
      if (live.has(path)) return failure("EEXIST", path)
      change({ folder: dirname(path), to: path, file })
      return undefined
    },
    rename: (from: string, to: string) => {
      const file = live.get(from)
      if (file === undefined) return failure("ENOENT", from)
      change({ folder: dirname(to), from, to, file })
      return undefined
    },
    remove: (path: string) => {
      const file = live.get(path)
      if (file !== undefined) change({ folder: dirname(path), from: path, file })
      return undefined
    },
    sync: (folder: string) => {
      for (const made of changes) if (made.folder === folder) apply(synced, made)
      changes = changes.filter((made) => made.folder !== folder)
      return undefined
    },
    afterPowerLoss: (): NamesImage => {
      const names = mapped(
        left(),
        onceEach((file) => file.afterPowerLoss()),
      )
      return { live: names, synced: names, changes: [] }
    },
    afterKill: (): NamesImage => {
      const map = onceEach((file) => file.afterKill())
      return {
        live: mapped(live, map),
        synced: mapped(synced, map),
        changes: changes.map((made) => ({ ...made, file: map(made.file) })),
      }
    },
  }
}

export type SimulatedNames = ReturnType<typeof makeNames>
