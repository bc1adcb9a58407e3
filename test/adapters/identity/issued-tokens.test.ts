/** Tokens that every process accepts: each process here is a separate one on the same log. */
import { setTimeout as pause } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted, Schedule, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { v7 } from "uuid"
import { Commands, Unavailable } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { stale_ms_max } from "#actors/system/issued-tokens.ts"
import { developmentCredentials } from "#adapters/identity/development-credentials.ts"
import { identity, tokenIssuer } from "#adapters/identity/identity.ts"
import { newToken, openTokenStore, sha256Of } from "#adapters/identity/token-store.ts"
import { adoptTokens, issuedTokens } from "#adapters/system/issued-tokens.ts"
import { Log, LogUnavailable } from "#events/log.ts"
import { Identity } from "#gateway/identity.ts"
import { logMemory } from "#journal"
import { callerOf, reason } from "../../world/authenticate.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { given } from "../../world/settings-given.ts"

const origin = () => ({ command_id: v7(), actor: "operator", at: "2026-11-23T00:00:00.000Z" })
const grant = { scopes: ["blobs:read"], roles: ["member"], project_id: "p" } as const
const credentials_nats = { url: "", user: "", password: "" }

/**
 * The log behind a connection that a test can cut; messages in transit arrive after it is restored.
 */
const cuttable = Effect.gen(function* () {
  const log = yield* Log
  const way = { is_cut: false }
  const error = new LogUnavailable({ detail: "cut off" })
  const over = <A>(effect: Effect.Effect<A, LogUnavailable>) =>
    Effect.suspend(() => (way.is_cut ? Effect.fail(error) : effect))
  const cut: Log["Service"] = {
    ...log,
    load: (stream) => over(log.load(stream)),
    head: (part) => over(log.head(part)),
    follow: (part, position) =>
      Stream.mapEffect(log.follow(part, position), (recorded) => over(Effect.succeed(recorded))),
    lasts: (part) => Stream.unwrap(over(Effect.sync(() => log.lasts(part)))),
  }
  return { way, log: cut }
})

/** A process with its own data folder. */
const newProcessWith = Effect.fnUntraced(function* (stale_ms: number) {
  const { way, log } = yield* cuttable
  const folder = yield* temporaryFolder
  const store = yield* openTokenStore(folder)
  const credentials = yield* developmentCredentials(folder, store, credentials_nats)
  const { tokens, issuer } = yield* Effect.provideService(issuedTokens(stale_ms), Log, log)
  const own = { store, issued: tokens }
  const services = yield* Layer.build(identity(given({}), own, credentials))
  const { authenticate } = yield* Effect.provideContext(Identity, services)
  const issue = (name: string, more: { readonly ttl_seconds?: number } = {}) =>
    Effect.map(issuer.issue({ name, ...grant, ...more }, origin()), Redacted.value)
  const revoke = (name: string) => issuer.revoke(name, origin())
  return { authenticate, issue, revoke, way, find: (token: string) => tokens.find(sha256Of(token)) }
})

const newProcess = newProcessWith(stale_ms_max)

type Running = Effect.Success<typeof newProcess>

/** Lets background work continue for less time than any deadline here; files are real. */
const moment = Effect.andThen(
  TestClock.adjust("250 millis"),
  Effect.promise(() => pause(2)),
)

const until = (is_so: () => boolean) =>
  Effect.suspend(() =>
    is_so() ? Effect.void : Effect.andThen(moment, Effect.fail("not yet")),
  ).pipe(Effect.retry(Schedule.recurs(100)))
const holds = ({ find }: Running, token: string) => until(() => find(token) !== undefined)

const memory = Layer.provideMerge(host, logMemory)
const test = (name: string, body: Effect.Effect<void, unknown, Commands | Log | Scope.Scope>) =>
  it.effect(name, () => body.pipe(Effect.scoped, Effect.provide(Layer.fresh(memory))))

describe("an issued token", () => {
  test(
    "is known to every process at once, with what it grants",
    Effect.gen(function* () {
      const [one, other] = [yield* newProcess, yield* newProcess]
      const token = yield* one.issue("ci")
      for (const { authenticate } of [one, other]) {
        const caller = yield* callerOf(authenticate, token)
        assert.deepInclude(caller, { actor: "token:ci", kind: "issued", project_id: "p" })
        assert.deepEqual([...caller.scopes, ...caller.roles], ["blobs:read", "member"])
      }
      assert.strictEqual(yield* reason(other.authenticate, newToken()), "unknown")
    }),
  )
  test(
    "is known without the log once it was heard of, as hot routes need it",
    Effect.gen(function* () {
      const [one, other] = [yield* newProcess, yield* newProcess]
      const token = yield* one.issue("ci")
      yield* holds(other, token)
      assert.isTrue(Exit.isExit(other.authenticate({ token: () => token })))
    }),
  )
  test(
    "is in the log as a hash, with who issued it",
    Effect.gen(function* () {
      const token = yield* (yield* newProcess).issue("ci")
      const { read } = yield* Log
      const [commit] = yield* Stream.runCollect(read("system.token"))
      assert.strictEqual(commit?.stream, `system.token.${sha256Of(token)}`)
      assert.strictEqual(commit?.commit.actor, "operator")
      assert.notInclude(JSON.stringify(commit), token)
    }),
  )
  test(
    "is worth nothing at any process after one revoked its name, and others are",
    Effect.gen(function* () {
      const [one, other] = [yield* newProcess, yield* newProcess]
      const tokens = [yield* one.issue("ci"), yield* other.issue("ci")]
      const kept = yield* one.issue("backup")
      for (const token of [...tokens, kept]) yield* holds(other, token)
      assert.strictEqual(yield* one.revoke("ci"), 2)
      for (const token of tokens) {
        assert.strictEqual(yield* reason(one.authenticate, token), "unknown")
        yield* until(() => other.find(token) === undefined)
        assert.strictEqual(yield* reason(other.authenticate, token), "unknown")
      }
      yield* callerOf(other.authenticate, kept)
      assert.strictEqual(yield* one.revoke("ci"), 0)
      assert.strictEqual(yield* reason((yield* newProcess).authenticate, tokens[0]), "unknown")
    }),
  )
  test(
    "is said to have expired, by every process",
    Effect.gen(function* () {
      const [one, other] = [yield* newProcess, yield* newProcess]
      const token = yield* one.issue("ci", { ttl_seconds: 60 })
      yield* callerOf(other.authenticate, token)
      yield* TestClock.adjust("60 seconds")
      for (const { authenticate } of [one, other, yield* newProcess]) {
        assert.strictEqual(yield* reason(authenticate, token), "expired")
      }
    }),
  )
})

describe("a process that is cut off from the log", () => {
  test(
    "accepts known tokens for a while, then reports that identity is unavailable",
    Effect.gen(function* () {
      const [one, other] = [yield* newProcess, yield* newProcess]
      const token = yield* one.issue("ci")
      yield* holds(other, token)
      other.way.is_cut = true
      yield* one.revoke("ci")
      yield* callerOf(other.authenticate, token)
      yield* TestClock.adjust(stale_ms_max + 1)
      assert.strictEqual(yield* reason(other.authenticate, token), "IdentityUnavailable")
      assert.strictEqual(yield* reason(other.authenticate, newToken()), "IdentityUnavailable")
      assert.strictEqual(yield* reason(other.authenticate, "no token of ours"), "unknown")
      other.way.is_cut = false
      assert.strictEqual(yield* reason(other.authenticate, token), "unknown")
      yield* moment
      assert.isUndefined(other.find(token))
    }),
  )
  test(
    "accepts known tokens indefinitely if the log is its own",
    Effect.gen(function* () {
      const alone = yield* newProcessWith(Infinity)
      const token = yield* alone.issue("ci")
      yield* holds(alone, token)
      alone.way.is_cut = true
      yield* TestClock.adjust(10 * stale_ms_max)
      yield* callerOf(alone.authenticate, token)
    }),
  )
  test(
    "takes them again as soon as it is not any more",
    Effect.gen(function* () {
      const one = yield* newProcess
      const token = yield* one.issue("ci")
      yield* holds(one, token)
      one.way.is_cut = true
      yield* TestClock.adjust(2 * stale_ms_max)
      one.way.is_cut = false
      yield* callerOf(one.authenticate, token)
      yield* holds(one, token)
    }),
  )
})

describe("tokens in the file of a release before", () => {
  const old = Effect.gen(function* () {
    const store = yield* openTokenStore(yield* temporaryFolder)
    const { issue } = tokenIssuer(store)
    const token = Redacted.value(yield* issue({ name: "old", ...grant, ttl_seconds: 600 }))
    yield* issue({ name: "control", scopes: [], roles: ["admin"] })
    return { store, token }
  })
  const names = ({ store }: Effect.Success<typeof old>) => store.all().map(({ name }) => name)

  test(
    "are known to every process, and can be revoked; the machine's own stays",
    Effect.gen(function* () {
      const before = yield* old
      yield* adoptTokens(before.store, "control")
      yield* until(() => names(before).length === 1)
      assert.deepEqual(names(before), ["control"])
      const process = yield* newProcess
      assert.strictEqual((yield* callerOf(process.authenticate, before.token)).actor, "token:old")
      yield* holds(process, before.token)
      assert.strictEqual(yield* process.revoke("old"), 1)
      assert.strictEqual(yield* reason(process.authenticate, before.token), "unknown")
    }),
  )
  test(
    "move one by one: tokens in the log can be revoked, even if others fail",
    Effect.gen(function* () {
      const before = yield* old
      const { issue } = tokenIssuer(before.store)
      yield* issue({ name: "older", ...grant })
      const { send } = yield* Commands
      let sent = 0
      const cut = Commands.of({
        send: (...args) =>
          sent++ === 0
            ? send(...args)
            : Effect.delay(Effect.fail(new Unavailable({ detail: "away" })), "1 second"),
      })
      yield* Effect.provideService(adoptTokens(before.store, "control"), Commands, cut)
      yield* until(() => names(before).length === 2)
      assert.deepEqual(names(before), ["control", "older"])
    }),
  )
  test(
    "stay there until somebody carries it out",
    Effect.gen(function* () {
      const before = yield* old
      const { send } = yield* Commands
      let tries = 0
      const away = Commands.of({
        send: (...args) =>
          tries++ === 0 ? Effect.fail(new Unavailable({ detail: "away" })) : send(...args),
      })
      yield* Effect.provideService(adoptTokens(before.store, "control"), Commands, away)
      yield* until(() => tries === 1)
      assert.deepEqual(names(before), ["old", "control"])
      yield* TestClock.adjust("5 seconds")
      yield* until(() => names(before).length === 1)
    }),
  )
})
