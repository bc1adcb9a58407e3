import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { rollLog } from "#adapters/log/roll.ts"
import { messagesOf } from "#adapters/state/proof.ts"
import { openStateStore, StateUnusable } from "#adapters/state/store.ts"
import { EventsConnection, NatsConnection } from "#bus"
import { Log } from "#events/log.ts"
import { restoration_stream } from "#events/system/restoration.ts"
import { findGenerations } from "#journal"
import { count, opened, whole } from "../../world/log/generation-log.ts"
import {
  backedUp,
  elsewhere,
  flipped,
  installed,
  more,
  newTarget,
  restored,
  seen,
} from "../../world/log/state.ts"
import { describeNats } from "../../world/programs/nats.ts"
import { publishedEvent } from "../../world/system/events-served.ts"

const passphrase = "correct horse battery staple"

describeNats("a backup of state", (it) => {
  it.effect("is the log, the events, the cursors and the files, in the first generation", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const before = yield* seen(world.log)
      const to = yield* newTarget
      const { files } = yield* backedUp(world, to)
      assert.deepEqual(
        files.map(({ path }) => path),
        ["audit-key.pem", "vault/key", "watchlist.json"],
      )
      yield* elsewhere((folder) =>
        Effect.gen(function* () {
          const log = yield* restored(to, world.log, { folder })
          assert.deepEqual(yield* seen(log), before)
          yield* opened(log, Effect.andThen(count("often", 99), whole))
          assert.equal(readFileSync(join(folder, "vault", "key"), "utf8"), "the vault's key")
          assert.equal(statSync(join(folder, "vault", "key")).mode & 0o777, 0o600)
          assert.equal(statSync(join(folder, "watchlist.json")).mode & 0o777, 0o644)
          assert.isFalse(existsSync(join(folder, "read-models")))
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("is of one moment: no event in it is of a commit that is not", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const { connection } = yield* EventsConnection
      const core = yield* NatsConnection
      // After each part is read, another event is written and published.
      let n = 40
      const happens = () =>
        Effect.gen(function* () {
          const position = yield* opened(world.log, count("meanwhile", n++))
          const event = JSON.stringify(publishedEvent(position).event)
          yield* Effect.promise(() =>
            connection.request("events.blob-storage.blob.blob_stored", event),
          )
        }).pipe(Effect.provideService(NatsConnection, core), Effect.orDie)
      const { log, events } = yield* backedUp(world, to, undefined, happens)
      const store = yield* openStateStore(to, { make: false })
      const positions: Array<number> = []
      yield* Effect.promise(async () => {
        for await (const { data } of messagesOf(store, events)) {
          positions.push(JSON.parse(data).position)
        }
      })
      assert.isAbove(positions.length, 0)
      assert.isAtMost(Math.max(...positions.slice(-3)), log.last)
    }).pipe(Effect.scoped),
  )

  it.effect("is added to, also where a new generation began meanwhile", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const first = yield* backedUp(world, to)
      yield* opened(world.log, count("often", 98))
      yield* more
      const second = yield* backedUp(world, to)
      assert.deepEqual(second.log.parts.slice(0, -1), first.log.parts)
      assert.deepEqual(second.events.parts.slice(0, -1), first.events.parts)
      assert.equal(second.log.last, first.log.last + 1)
      yield* rollLog(world.log)
      yield* opened(world.log, count("rarely", 97))
      const third = yield* backedUp(world, to)
      assert.equal(third.log.generation, 2)
      assert.equal(third.log.parts.length, 1)
      // Files that are in no manifest are deleted.
      const { files, log, events, webhooks } = third
      const named = [files, log.parts, events.parts, webhooks.parts].flat()
      assert.deepEqual(
        readdirSync(join(to, "objects")).toSorted(),
        [...new Set(named.map(({ object }) => object))].toSorted(),
      )
      const before = yield* seen(world.log)
      yield* elsewhere((folder) =>
        Effect.gen(function* () {
          const log = yield* restored(to, world.log, { folder })
          assert.deepEqual(yield* seen(log), before)
          yield* opened(log, Effect.andThen(count("once-1", 99), whole))
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("that is stopped anywhere leaves the one before it as it was", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      yield* backedUp(world, to)
      const manifest = readFileSync(join(to, "manifest.jsonl"))
      const whole_objects = readdirSync(join(to, "objects"))
      yield* opened(world.log, count("often", 95))
      yield* more
      for (const part of ["webhooks", "events", "log", "files"]) {
        const reported = (line: string) =>
          line.startsWith(part) ? Effect.die("stopped") : Effect.void
        yield* Effect.exit(backedUp(world, to, undefined, reported))
        assert.deepEqual(readFileSync(join(to, "manifest.jsonl")), manifest)
        assert.includeMembers(readdirSync(join(to, "objects")), whole_objects)
      }
      yield* elsewhere((folder) =>
        Effect.gen(function* () {
          yield* opened(yield* restored(to, world.log, { folder }), whole)
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("is refused where one bit of one file is another, and says which", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const manifest = yield* backedUp(world, to)
      yield* elsewhere((folder) =>
        Effect.gen(function* () {
          const { files, log, events, webhooks } = manifest
          const all = [files, log.parts, events.parts, webhooks.parts].flat()
          assert.equal(all.length, 6)
          for (const { path, object } of all) {
            const putBack = flipped(join(to, "objects", object))
            assert.include(
              String(yield* Effect.flip(restored(to, world.log, { folder }))),
              `${path} `,
            )
            putBack()
          }
          const putBack = flipped(join(to, "manifest.jsonl"))
          const failure = String(yield* Effect.flip(restored(to, world.log, { folder })))
          assert.include(failure, "manifest.jsonl is damaged")
          putBack()
          assert.isFalse(existsSync(folder))
          yield* restored(to, world.log, { folder })
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("is rejected if its manifest was rewritten for another log", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const manifest = yield* backedUp(world, to)
      const { log } = manifest
      const forged = [
        { ...log, head: log.head.replace(/\n(\d+)\n/, (_, size) => `\n${Number(size) + 1}\n`) },
        { ...log, tree: { ...log.tree, peaks: log.tree.peaks.map((peak) => `0${peak.slice(1)}`) } },
        { ...log, last: log.last - 1 },
        { ...log, parts: log.parts.concat(log.parts) },
        { ...log, key: log.key.replace(/.{8}$/, "AAAAAAAA") },
      ]
      yield* elsewhere((folder) =>
        Effect.forEach(forged, (other) =>
          Effect.gen(function* () {
            const store = yield* openStateStore(to, { make: true })
            yield* store.commit({ ...manifest, log: other })
            const failure = yield* Effect.flip(restored(to, world.log, { folder }))
            assert.instanceOf(failure, StateUnusable)
            assert.isFalse(existsSync(folder))
          }),
        ),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("to a file is rejected as no folder, regardless of its permissions", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = join(yield* newTarget, "file")
      writeFileSync(to, "", { mode: 0o644 })
      const refused = yield* Effect.flip(backedUp(world, to))
      assert.equal(refused.message, `${to} is not a folder: choose another.`)
    }).pipe(Effect.scoped),
  )

  it.effect("sealed, shows nothing, and opens by its passphrase alone", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      chmodSync(to, 0o755)
      const open = yield* Effect.flip(backedUp(world, to))
      assert.include(open.message, "can be read by other users")
      yield* backedUp(world, to, passphrase)
      const manifest = yield* backedUp(world, to, passphrase)
      const bytes = [
        readFileSync(join(to, "manifest.jsonl")),
        ...manifest.files.map(({ object }) => readFileSync(join(to, "objects", object))),
      ]
      assert.isFalse(bytes.some((all) => all.includes("the vault's key") || all.includes("vault/")))
      const damaged = manifest.files[0]?.object ?? ""
      yield* elsewhere((folder) =>
        Effect.gen(function* () {
          const log = world.log
          for (const wrong of [{}, { passphrase: "another" }]) {
            assert.instanceOf(
              yield* Effect.flip(restored(to, log, { folder, ...wrong })),
              StateUnusable,
            )
          }
          const putBack = flipped(join(to, "objects", damaged))
          const failure = yield* Effect.flip(restored(to, log, { folder, passphrase }))
          assert.include(String(failure), "audit-key.pem")
          putBack()
          const before = yield* restored(to, log, { folder, passphrase })
          yield* opened(before, whole)
          assert.equal(readFileSync(join(folder, "vault", "key"), "utf8"), "the vault's key")
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("is not added to by another log", () =>
    Effect.gen(function* () {
      const to = yield* newTarget
      yield* Effect.scoped(
        Effect.gen(function* () {
          const one = yield* installed
          yield* opened(one.log, count("one", 1))
          yield* backedUp(one, to)
        }),
      )
      const manifest = readFileSync(join(to, "manifest.jsonl"))
      const other = yield* installed
      // The same commits in a different order form a different log.
      yield* opened(other.log, count("other", 1))
      const failure = yield* Effect.flip(backedUp(other, to))
      assert.include(String(failure), "another log")
      assert.deepEqual(readFileSync(join(to, "manifest.jsonl")), manifest)
    }).pipe(Effect.scoped),
  )
})

/** The restores that the log records. */
const restores = Effect.gen(function* () {
  const log = yield* Log
  const commits = yield* Stream.runCollect(log.read(restoration_stream))
  return commits.flatMap(({ commit }) => commit.events)
})

describeNats("a restore of state", (it) => {
  it.effect("stopped after any step serves nothing, and is finished when it is repeated", () =>
    Effect.gen(function* () {
      const world = yield* installed
      yield* rollLog(world.log)
      const before = yield* seen(world.log)
      const to = yield* newTarget
      yield* backedUp(world, to)
      yield* elsewhere((folder) =>
        Effect.gen(function* () {
          const { jsm } = yield* NatsConnection
          const steps = new Set<string>()
          // Each attempt gets one step further than the previous one.
          const after = (step: string) => {
            if (steps.has(step)) return Effect.void
            steps.add(step)
            return Effect.fail(new StateUnusable({ message: "stopped" }))
          }
          for (;;) {
            const tried = yield* Effect.result(restored(to, world.log, { folder, after }))
            if (Result.isSuccess(tried)) break
            assert.equal(tried.failure.message, "stopped")
            const refused = yield* Effect.flip(
              Effect.scoped(Effect.provide(DataFolder, DataFolder.layer(folder))),
            )
            assert.include(refused.message, "was not finished")
            // From here on the log is open, and only this folder is incomplete.
            if (steps.has("opened the log")) continue
            const shared = yield* Effect.flip(findGenerations(jsm, world.log.name))
            assert.include(shared.message, "was not finished")
          }
          assert.deepEqual(
            [...steps],
            [
              "created the log's stream",
              "wrote a file",
              "wrote commits",
              "wrote the log",
              "wrote the events",
              "wrote the cursors",
              "opened the log",
              "recorded in the log",
            ],
          )
          const result = yield* opened({ ...world.log, folder: join(folder, "log") }, restores)
          assert.deepEqual(
            result.map(({ type }) => type),
            ["StateRestored"],
          )
          const log = { ...world.log, folder: join(folder, "log") }
          assert.deepEqual(yield* seen(log), before)
          yield* Effect.scoped(Effect.provide(DataFolder, DataFolder.layer(folder)))
          yield* opened(log, Effect.andThen(count("often", 99), whole))
        }),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("leaves alone a folder that holds something, and a bus that holds a log", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      yield* backedUp(world, to)
      const full = yield* Effect.flip(restored(to, world.log, { folder: world.folder }))
      assert.include(full.message, "is not empty")
      const before = yield* seen(world.log)
      const empty = join(yield* newTarget, "data")
      yield* opened(world.log, count("often", 96))
      const { name } = world.log
      const used = yield* Effect.flip(restored(to, { ...world.log, name }, { folder: empty }))
      assert.include(used.message, "already has a log")
      const { log } = yield* seen(world.log)
      assert.equal(log.all.length, before.log.all.length + 1)
      // Only the folder was lost; the bus still has its log.
      yield* restored(to, world.log, { folder: empty, is_files_only: true })
      assert.equal(readFileSync(join(empty, "vault", "key"), "utf8"), "the vault's key")
      assert.deepEqual((yield* seen(world.log)).log, log)
    }).pipe(Effect.scoped),
  )
})
