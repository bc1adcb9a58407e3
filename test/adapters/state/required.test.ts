/** State that a backup must contain to be restorable; without it, no backup is made. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { rollLog } from "#adapters/log/roll.ts"
import { messagesOf } from "#adapters/state/proof.ts"
import { openStateStore } from "#adapters/state/store.ts"
import { NatsConnection } from "#bus"
import { restoring_key } from "#journal"
import { count, opened } from "../../world/log/generation-log.ts"
import { backedUp, flipped, installed, newTarget, restored } from "../../world/log/state.ts"
import { describeNats } from "../../world/programs/nats.ts"

describeNats("a backup of state that can be restored", (it) => {
  it.effect("has the cursor of each webhook, also where all are moved while it is made", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const bus = yield* NatsConnection
      const stream = "KV_ALMANAC_WEBHOOKS"
      const subjectOf = (id: string) => `$KV.ALMANAC_WEBHOOKS.${id}`
      const save = async (id: string) => {
        const query = { last_by_subj: subjectOf("hook") }
        const kept = await bus.jsm.streams.getMessage(stream, query)
        await bus.js.publish(subjectOf(id), kept?.data ?? "")
      }
      yield* Effect.promise(() => save("other"))
      // Each bucket changes right after every request for its info.
      const info: typeof bus.jsm.streams.info = async (name, ...rest) => {
        const found = await bus.jsm.streams.info(name, ...rest)
        if (name === stream) for (const id of ["hook", "other"]) await save(id)
        return found
      }
      const streams = Object.create(bus.jsm.streams, { info: { value: info } })
      const jsm = Object.create(bus.jsm, { streams: { value: streams } })
      const { webhooks } = yield* backedUp(world, to).pipe(
        Effect.provideService(NatsConnection, { ...bus, jsm }),
      )
      const store = yield* openStateStore(to, { make: false })
      const ids: Array<string> = []
      yield* Effect.promise(async () => {
        for await (const { subject } of messagesOf(store, webhooks)) ids.push(subject)
      })
      assert.includeMembers(
        ids.map((subject) => subject.split(".").at(-1)),
        ["hook", "other"],
      )
    }).pipe(Effect.scoped),
  )

  it.effect("is not made where a generation's file is missing or another", () =>
    Effect.gen(function* () {
      const world = yield* installed
      yield* rollLog(world.log)
      yield* opened(world.log, count("often", 94))
      yield* rollLog(world.log)
      for (const name of ["generation-1.json", "generation-1.ndjson.gz"]) {
        const path = join(world.log.folder, name)
        const right = readFileSync(path)
        rmSync(path)
        const missing = yield* Effect.flip(backedUp(world, yield* newTarget))
        assert.include(String(missing), "eneration")
        writeFileSync(path, right)
      }
      const to = yield* newTarget
      // The log records the hash of the last archive; an index records the hash of the one before.
      for (const number of [1, 2]) {
        const name = `generation-${number}.ndjson.gz`
        const putBack = flipped(join(world.log.folder, name))
        assert.include(String(yield* Effect.flip(backedUp(world, to))), `log/${name}`)
        assert.isFalse(existsSync(join(to, "manifest.jsonl")))
        putBack()
      }
      yield* backedUp(world, to)
    }).pipe(Effect.scoped),
  )

  it.effect("writes again what it lost of files, and is not added to where the log's part is", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const { files, log } = yield* backedUp(world, to)
      const pathOf = (one: { readonly object: string } | undefined) =>
        join(to, "objects", one?.object ?? "")
      rmSync(pathOf(files[0]))
      yield* backedUp(world, to)
      assert.isTrue(existsSync(pathOf(files[0])))
      writeFileSync(pathOf(log.parts[0]), "")
      const failure = yield* Effect.flip(backedUp(world, to))
      assert.include(String(failure), `${log.parts[0]?.path} `)
    }).pipe(Effect.scoped),
  )

  it.effect("is not taken for its files alone where the log is half restored", () =>
    Effect.gen(function* () {
      const world = yield* installed
      const to = yield* newTarget
      const { id } = yield* backedUp(world, to)
      const { jsm } = yield* NatsConnection
      const marked = (metadata: Record<string, string>) =>
        Effect.promise(() => jsm.streams.update(world.log.name, { metadata }))
      yield* marked({ [restoring_key]: id })
      const folder = join(yield* newTarget, "data")
      const failure = yield* Effect.flip(restored(to, world.log, { folder, is_files_only: true }))
      assert.include(failure.message, "was not finished")
      assert.isTrue(existsSync(join(folder, "restoring.json")))
      yield* marked({})
      yield* restored(to, world.log, { folder, is_files_only: true })
    }).pipe(Effect.scoped),
  )
})
