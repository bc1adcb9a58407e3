/** Commands that inspect the log of an external bus do not change it. */
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { afterAll } from "vitest"
import { ensureStream, NatsConnection, NatsServer } from "#bus"
import { logStreamConfig } from "#journal"
import { describeNats } from "../world/programs/nats.ts"
import { cleanUp, newFolder, runVerb } from "../world/server/server.ts"

const stream = "ALMANAC_LOG"

afterAll(cleanUp)

const verb = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const { servers, core } = yield* NatsServer
  const environment = {
    ALMANAC_NATS__URL: servers[0] ?? "",
    ALMANAC_NATS__USER: core.user ?? "",
    ALMANAC_NATS__PASSWORD: Redacted.value(core.password ?? Redacted.make("")),
  }
  return yield* Effect.promise(() => runVerb(newFolder(), args, environment))
})

const streams = Effect.gen(function* () {
  const { jsm } = yield* NatsConnection
  return yield* Effect.promise(() => jsm.streams.names().next())
})

const lookers = [
  ["audit list", ["audit", "list"]],
  ["audit verify", ["audit", "verify"]],
  ["audit replay", ["audit", "replay"]],
  ["audit state", ["audit", "state", "share-protection.target.t"]],
  ["log quarantine", ["log", "quarantine"]],
] as const

describeNats("a read-only command, on an external bus", (it) => {
  it.effect("doctor reports that it has no log, and makes none", () =>
    Effect.gen(function* () {
      const { stdout } = yield* verb("doctor")
      assert.match(stdout, /^warn +log +ALMANAC_LOG does not exist on this bus/m)
      assert.notInclude(yield* streams, stream)
    }),
  )

  it.effect.each(lookers)("reports that there is no log, and makes none: %s", ([, args]) =>
    Effect.gen(function* () {
      const { code, stderr } = yield* verb(...args)
      assert.notEqual(code, 0)
      assert.match(stderr, /The stream ALMANAC_LOG does not exist on this bus/)
      assert.notInclude(yield* streams, stream)
    }),
  )

  it.effect("doctor leaves the log unchanged, regardless of this command's settings", () =>
    Effect.gen(function* () {
      const { jsm } = yield* NatsConnection
      const made = logStreamConfig({ stream, max_bytes: 2 ** 30 })
      yield* ensureStream(jsm, made)
      const configOf = Effect.promise(async () => (await jsm.streams.info(stream)).config)
      const before = yield* configOf
      const { stdout } = yield* verb("doctor")
      assert.match(stdout, /^(ok|warn) +quarantine +/m)
      assert.deepEqual(yield* configOf, before)
    }),
  )
})
