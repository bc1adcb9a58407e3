/**
 * Damage to the files of a copied JetStream store, drawn from a seed and described in words.
 *
 * README.md in this folder lists the effect of each on nats-server 2.15.1.
 */
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { type Seeded, seeded } from "../../world/seeded.ts"

/** The path of the log's account in the data folder, with an embedded nats-server. */
const account = "nats/jetstream/jetstream/CORE"
const page_bytes = 4096
const tail_bytes = 30
const garbage_bytes_max = 2_000

/** A copy of a data folder to damage, and others to take files from. */
export interface Place {
  readonly data_dir: string
  /** The stream of the log's newest generation. */
  readonly stream: string
  /** An earlier copy of the same folder. */
  readonly earlier: string
  /** The data folder of another installation. */
  readonly other: string
}

interface Paths {
  readonly stream: string
  readonly msgs: string
  readonly index: string
}

const pathsOf = ({ data_dir, stream }: Place): Paths => {
  const folder = join(data_dir, account, "streams", stream)
  const msgs = join(folder, "msgs")
  return { stream: folder, msgs, index: join(msgs, "index.db") }
}

/** Block files that are not empty, oldest first. */
const blocksIn = ({ msgs }: Paths) => {
  if (!existsSync(msgs)) return []
  return readdirSync(msgs)
    .filter((name) => name.endsWith(".blk") && statSync(join(msgs, name)).size > 0)
    .toSorted((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))
}

/** Changes bytes of a file in place, so that a reader that has it open sees the change. */
const change = (path: string, at: number, to: (bytes: Buffer) => void) => {
  const bytes = readFileSync(path)
  to(bytes.subarray(at))
  writeFileSync(path, bytes)
}

const flipAt = (path: string, at: number, bit: number) =>
  change(path, at, (bytes) => {
    bytes[0] = (bytes[0] ?? 0) ^ (1 << bit)
  })

/** A block drawn from the seed; undefined if earlier damage left none. */
const blockOf = (paths: Paths, random: Seeded) => {
  const [first, ...others] = blocksIn(paths)
  if (first === undefined) return undefined
  const name = random.pick<string>([first, ...others])
  const path = join(paths.msgs, name)
  return { name, path, size: statSync(path).size }
}

type Apply = (place: Place, random: Seeded) => string

type Block = NonNullable<ReturnType<typeof blockOf>>

/** Damage to one block drawn from the seed. */
const ofBlock =
  (hurt: (block: Block, random: Seeded, paths: Paths) => string) =>
  (place: Place, random: Seeded) => {
    const paths = pathsOf(place)
    const block = blockOf(paths, random)
    return block === undefined ? "no block is left" : hurt(block, random, paths)
  }

/** Damage to a file that may not exist. */
const ofFile =
  (name: string, hurt: (path: string, random: Seeded) => string) =>
  (place: Place, random: Seeded) => {
    const path = join(pathsOf(place).stream, name)
    return existsSync(path) ? `${name} ${hurt(path, random)}` : `${name} is missing`
  }

const removed = (path: string) => {
  rmSync(path, { recursive: true })
  return "is removed"
}

const flipped = (path: string, random: Seeded) => {
  const at = random.between(0, Math.max(0, statSync(path).size - 1))
  flipAt(path, at, random.between(0, 7))
  return `has a bit flipped at ${at}`
}

/** Replaces this folder's account with the one of another folder. */
const storeOf = (place: Place, from: string) => {
  rmSync(join(place.data_dir, account), { recursive: true, force: true })
  cpSync(join(from, account), join(place.data_dir, account), { recursive: true })
}

const swap = (one: string, other: string) => {
  renameSync(one, `${one}.swapped`)
  renameSync(other, one)
  renameSync(`${one}.swapped`, other)
}

/** All kinds of damage, by name. */
export const damages = {
  "flip the middle of a block": ofBlock(({ name, path, size }) => {
    const at = Math.floor(size / 2)
    flipAt(path, at, 0)
    return `a bit of ${name} is flipped at ${at} of ${size}`
  }),
  "flip a bit": ofBlock(({ name, path, size }, random) => {
    const at = random.between(0, size - 1)
    flipAt(path, at, random.between(0, 7))
    return `a bit of ${name} is flipped at ${at} of ${size}`
  }),
  "zero a page": ofBlock(({ name, path, size }, random) => {
    const at = page_bytes * random.between(0, Math.max(0, Math.ceil(size / page_bytes) - 1))
    change(path, at, (bytes) => bytes.fill(0, 0, Math.min(page_bytes, bytes.length)))
    return `a page of ${name} at ${at} of ${size} is zero`
  }),
  "cut the last 30 bytes": (place) => {
    const paths = pathsOf(place)
    const name = blocksIn(paths).at(-1)
    if (name === undefined) return "no block is left"
    const path = join(paths.msgs, name)
    truncateSync(path, Math.max(0, statSync(path).size - tail_bytes))
    return `the last ${tail_bytes} bytes of ${name} are cut`
  },
  "cut a block": ofBlock(({ name, path, size }, random) => {
    const left = random.between(0, size - 1)
    truncateSync(path, left)
    return `${name} has ${left} of its ${size} bytes`
  }),
  "remove a block": ofBlock(({ name, path }) => `${name} ${removed(path)}`),
  "swap two blocks": ofBlock(({ name, path }, random, paths) => {
    const other = blockOf(paths, random)
    if (other === undefined || other.name === name) return "a block stays where it is"
    swap(path, other.path)
    return `${name} and ${other.name} are swapped`
  }),
  "copy a block over another": ofBlock(({ name, path }, random, paths) => {
    const other = blockOf(paths, random)
    if (other === undefined || other.name === name) return "a block stays as it is"
    copyFileSync(path, other.path)
    return `${other.name} is a copy of ${name}`
  }),
  "append garbage": ofBlock(({ name, path }, random) => {
    const bytes = Buffer.alloc(random.between(1, garbage_bytes_max), random.between(0, 255))
    appendFileSync(path, bytes)
    return `${bytes.length} bytes of garbage follow ${name}`
  }),
  "remove the index": ofFile("msgs/index.db", removed),
  "flip a bit of the index": ofFile("msgs/index.db", flipped),
  "put an earlier index back": (place) => {
    const from = pathsOf({ ...place, data_dir: place.earlier }).index
    const to = pathsOf(place)
    if (!existsSync(from) || !existsSync(to.msgs)) return "there is no earlier index"
    copyFileSync(from, to.index)
    return "index.db is an earlier one"
  },
  "flip a bit of the stream's settings": ofFile("meta.inf", flipped),
  "remove the stream's settings": ofFile("meta.inf", removed),
  "remove the settings' checksum": ofFile("meta.sum", removed),
  "remove the messages": ofFile("msgs", removed),
  "remove the stream": ofFile("", removed),
  "remove the account": (place) => {
    rmSync(join(place.data_dir, account), { recursive: true, force: true })
    return "the account's folder is removed"
  },
  "put an earlier store back": (place) => {
    storeOf(place, place.earlier)
    return "the store is an earlier one"
  },
  "put another installation's store": (place) => {
    storeOf(place, place.other)
    return "the store is another installation's"
  },
} satisfies Readonly<Record<string, Apply>>

export type DamageName = keyof typeof damages

export const damage_names = Object.keys(damages) as ReadonlyArray<DamageName>

/** A kind of damage and the seed for its draws; the same seed damages the same bytes. */
export interface Damage {
  readonly name: DamageName
  readonly seed: number
}

/** Applies the damage and returns its description. */
export const hurt = (place: Place, { name, seed }: Damage): string =>
  damages[name](place, seeded(seed))
