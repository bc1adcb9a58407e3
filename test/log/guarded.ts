/** A guarded log on a real nats-server in a folder, and ways to damage its store. */
import { cpSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { Effect, Layer } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import {
  LogWatch,
  logGenerations,
  mark_file,
  newWatch,
  openMark,
  preserveBlocks,
  preserved_folder,
  removePreserved,
  settleMark,
} from "#journal"
import { Count, Counter } from "../world/counter.ts"

export const log_name = "ALMANAC_LOG"

const bus = (folder: string) =>
  NatsConnection.layer.pipe(
    Layer.provideMerge(
      ownServerLayer({
        before: (store) =>
          Effect.promise(async () => {
            await preserveBlocks(store, log_name, join(folder, preserved_folder))
          }),
      }),
    ),
    Layer.provideMerge(DataFolder.layer(folder)),
  )

const watching = (folder: string) =>
  Layer.unwrap(
    Effect.map(
      openMark(join(folder, mark_file), () => undefined),
      (kept) => {
        const release = Effect.promise(() => removePreserved(join(folder, preserved_folder)))
        const watch = newWatch(kept.found, kept, release)
        return Layer.merge(Layer.succeed(LogWatch, watch), Layer.succeed(LogGuard, watch))
      },
    ),
  )

const options = (folder: string) => ({ name: log_name, folder: join(folder, "log"), replicas: 1 })

/** The log in this folder with its guard, as a server opens it. */
export const guardedLog = (folder: string) =>
  host.pipe(
    Layer.provideMerge(logGenerations(options(folder))),
    Layer.provideMerge(watching(folder)),
    Layer.provideMerge(bus(folder)),
  )

/** The log in this folder without its guard, as `accept-loss` opens it. */
export const openLog = (folder: string) =>
  Layer.provideMerge(
    Layer.provideMerge(host, logGenerations(options(folder))),
    Layer.fresh(bus(folder)),
  )

/** Increments one of eight counters `times` times, in a commit each. */
export const write = (times: number) =>
  Effect.gen(function* () {
    const commands = yield* Commands
    for (let i = 0; i < times; i++) {
      const origin = {
        command_id: crypto.randomUUID(),
        actor: "test",
        at: "2026-11-28T00:00:00.000Z",
      }
      yield* commands.send(origin, address(Counter, `c${i % 8}`, Count.make({ by: 1 })))
    }
    return yield* (yield* Log).head("")
  })

/** Copies the folder as a kill would leave it after this many commits, while it is in use. */
export const crashImage = (folder: string, copy: string, commits: number) =>
  Effect.gen(function* () {
    yield* settleMark
    yield* write(commits)
    // The mark lags behind by a few milliseconds at most.
    yield* Effect.promise(() => setTimeout(100))
    cpSync(folder, copy, { recursive: true, filter: (path) => !path.includes("/run/lock") })
  }).pipe(Effect.provide(guardedLog(folder)), Effect.scoped)

/** The folder of the log's stream within a data folder. */
export const streamFolder = (folder: string) =>
  join(folder, "nats", "jetstream", "jetstream", "CORE", "streams", log_name)

/** The blocks of the log's stream, oldest first. */
export const blocksOf = (folder: string) => {
  const messages = join(streamFolder(folder), "msgs")
  return readdirSync(messages)
    .filter((name) => name.endsWith(".blk"))
    .toSorted((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10))
    .map((name) => join(messages, name))
}

export const sizeOf = (path: string) => statSync(path).size
