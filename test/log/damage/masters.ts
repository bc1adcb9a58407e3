/**
 * Data folders with a log of a few hundred commits, made once and copied for each case: as a kill
 * and as an orderly stop leave them, in the first generation and in the second.
 */
import { cpSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { host } from "#actors/host.ts"
import { rollLog } from "#adapters/log/roll.ts"
import { NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { findGenerations } from "#journal"
import { busAlone, exclusive, generations } from "#server/session.ts"
import { count } from "../../world/log/generation-log.ts"
import { given } from "../../world/settings-given.ts"
import type { Place } from "./damage.ts"
import { smallBlocks } from "./plain-server.ts"

/** Commits of each phase; they fill several blocks of 32 KB. */
const commits = 240
/** Number of aggregates, with names of different lengths. */
const aggregates = 37
/**
 * Milliseconds until the high-water mark, which is written after the acknowledgement, is on disk.
 */
const behind_ms = 100

/** An acknowledged commit. */
export interface Acknowledged {
  readonly position: number
  readonly stream: string
  /** SHA-256 of its bytes, in hex. */
  readonly hash: string
}

export const states = ["killed", "stopped"] as const
export type State = (typeof states)[number]

/** A folder to copy, and its content. */
export interface Master {
  readonly place: Place
  readonly acknowledged: ReadonlyArray<Acknowledged>
}

export type Masters = Readonly<Record<`${State} ${1 | 2}`, Master>>

export const settingsOf = (data_dir: string) => given({ data: { dir: data_dir } })

/** Appends commits through commands, as a server does. `from` makes their texts differ. */
const work = Effect.fnUntraced(function* (from: number) {
  for (let n = from; n < from + commits; n++) {
    yield* count(`counter-${"x".repeat(n % aggregates)}`, n)
  }
  yield* Effect.sleep(behind_ms)
})

const acknowledgedIn = Effect.gen(function* () {
  const log = yield* Log
  const all = yield* Stream.runCollect(log.read("", 0))
  return all.map(({ position, stream, hash }): Acknowledged => ({ position, stream, hash }))
})

const currentOf = (data_dir: string) =>
  Effect.flatMap(NatsConnection, ({ jsm }) =>
    findGenerations(jsm, generations(settingsOf(data_dir)).name),
  )

const copy = (from: string, to: string) =>
  Effect.sync(() => {
    rmSync(to, { recursive: true, force: true })
    cpSync(from, to, { recursive: true })
  })

/** Does some work in a folder, and copies it before an orderly stop, with nothing in flight. */
const stretch = Effect.fnUntraced(function* (data_dir: string, killed: string, from: number) {
  const settings = settingsOf(data_dir)
  const running = Effect.gen(function* () {
    yield* work(from)
    const { current } = yield* currentOf(data_dir)
    const acknowledged = yield* acknowledgedIn
    yield* copy(data_dir, killed)
    return { stream: current.stream, acknowledged }
  })
  return yield* Effect.provide(
    running,
    Layer.fresh(Layer.provideMerge(host, exclusive(settings))),
    { local: true },
  )
})

/** Creates the masters in a folder. */
export const makeMasters = Effect.fnUntraced(function* (folder: string) {
  const at = (name: string) => join(folder, name)
  const live = at("live")
  const other = at("other")
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const data_dir of [live, other]) {
    mkdirSync(join(data_dir, "nats"), { recursive: true, mode: 0o700 })
    const { name } = generations(settingsOf(data_dir))
    yield* smallBlocks(data_dir, name)
  }
  yield* stretch(other, at("other-killed"), commits)

  const name = generations(settingsOf(live)).name
  yield* stretch(live, at("unused"), 0)
  yield* copy(live, at("earlier-1"))
  yield* smallBlocks(live, name)
  const one = yield* stretch(live, at("killed-1"), commits)
  yield* copy(live, at("stopped-1"))

  const bus = Layer.fresh(busAlone(settingsOf(live)))
  yield* Effect.provide(rollLog(generations(settingsOf(live))), bus, { local: true })
  const { current } = yield* Effect.provide(currentOf(live), bus, { local: true })
  yield* smallBlocks(live, current.stream)
  yield* copy(live, at("earlier-2"))
  const two = yield* stretch(live, at("killed-2"), 2 * commits)
  yield* copy(live, at("stopped-2"))

  const master = (state: State, generation: 1 | 2): Master => {
    const { stream, ...held } = generation === 1 ? one : two
    const earlier = at(`earlier-${generation}`)
    return { ...held, place: { data_dir: at(`${state}-${generation}`), stream, earlier, other } }
  }
  return {
    "killed 1": master("killed", 1),
    "stopped 1": master("stopped", 1),
    "killed 2": master("killed", 2),
    "stopped 2": master("stopped", 2),
  } satisfies Masters
})
