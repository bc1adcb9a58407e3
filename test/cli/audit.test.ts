import { readFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Result, Runtime } from "effect"
import { Command } from "effect/cli"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { TestClock } from "effect/testing"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { checkpoint_stream } from "#actors/system/checkpoint.ts"
import { checkpointer } from "#actors/system/checkpointer.ts"
import { Election } from "#actors/system/election.ts"
import type { LogStanding } from "#actors/system/log-standing.ts"
import type { Notary } from "#actors/system/notary.ts"
import { publishInstance } from "#adapters/data-folder/instance-file.ts"
import { NatsServer } from "#bus"
import { audit } from "#cli/audit/audit.ts"
import { followLog, listFromLog } from "#cli/audit/list.ts"
import { type LogRange, replayLog } from "#cli/audit/replay.ts"
import { verifyLog } from "#cli/audit/verify.ts"
import { log } from "#cli/log/log.ts"
import { rebuild } from "#cli/log/rebuild.ts"
import { root } from "#cli/root.ts"
import { Log } from "#events/log.ts"
import { Audit, AuditProofs } from "#gateway/system/apis/audit.ts"
import {
  auditAggregate,
  auditHead,
  auditKey,
  exportAudit,
  listAudit,
  logFigures,
} from "#gateway/system/audit.ts"
import { logMemory } from "#journal"
import { SystemModel } from "#projections/system/blueprint.ts"
import { JoinNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { ElectLeader } from "#schemas/system/election.ts"
import { details } from "#server/audit-details.ts"
import { exclusive, witnessing } from "#server/session.ts"
import { sqlite } from "#sqlite"
import { serveHttp } from "../world/http.ts"
import { describeWithServer, temporaryFolder } from "../world/programs/nats.ts"
import { given } from "../world/settings-given.ts"
import { changed, tamperedLog } from "../world/system/tampered-log.ts"
import { failing, printed } from "./printed.ts"

const hour = (n: number) => new Date(Date.UTC(2026, 10, 20, n)).toISOString()

const elect = Effect.fnUntraced(function* (of: string, holder: string, n: number) {
  const commands = yield* Commands
  const origin = { command_id: `elect-${of}-${n}`, actor: holder, at: hour(n) }
  return yield* commands.send(origin, address(Election, of, ElectLeader.make({ holder })))
})

/** Five elections of two processes, at 1, 2, 3, 4 and 5 o'clock. */
const story = Effect.gen(function* () {
  yield* elect("publisher", "one", 1)
  yield* elect("watchdog", "one", 2)
  yield* elect("publisher", "two", 3)
  yield* elect("publisher", "one", 4)
  yield* elect("watchdog", "two", 5)
})

const app = Layer.provideMerge(host, logMemory)

const positions = (lines: ReadonlyArray<string>) =>
  lines.map((line) => (JSON.parse(line) as { position: number }).position)

describe("audit list without an instance", () => {
  it.effect("answers what the API answers, from the log itself", () =>
    Effect.gen(function* () {
      yield* story
      const list = (query: Parameters<typeof listFromLog>[0]) =>
        Effect.map(listFromLog(query), ({ events, next_marker }) => [
          events.map(({ position }) => position),
          next_marker,
        ])
      assert.deepEqual(yield* list({}), [[5, 4, 3, 2, 1], undefined])
      assert.deepEqual(yield* list({ limit: 2 }), [[5, 4], "4.0"])
      assert.deepEqual(yield* list({ limit: 2, marker: "4.0" }), [[3, 2], "2.0"])
      assert.deepEqual(yield* list({ limit: 2, marker: "2.0" }), [[1], undefined])
      assert.deepEqual(yield* list({ order: "asc", limit: 4 }), [[1, 2, 3, 4], "4.0"])
      assert.deepEqual(yield* list({ order: "asc", marker: "4.0" }), [[5], undefined])
      assert.deepEqual(yield* list({ subject: "watchdog", actor: "two" }), [[5], undefined])
      assert.deepEqual(
        yield* list({ from: Date.parse(hour(2)), to: Date.parse(hour(4)), order: "asc" }),
        [[2, 3], undefined],
      )
    }).pipe(Effect.provide(app)),
  )
})

/** Waits until all followers of the log have processed it. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 200; i++) yield* Effect.yieldNow
})

describe("audit follow", () => {
  it.effect("prints what comes, not what was, and only what was asked for", () =>
    Effect.gen(function* () {
      yield* story
      const { out } = yield* printed(
        Effect.gen(function* () {
          const following = yield* Effect.forkChild(followLog({ subject: "publisher" }, true))
          yield* settled
          yield* elect("watchdog", "three", 6)
          yield* elect("publisher", "three", 7)
          yield* settled
          yield* Fiber.interrupt(following)
        }),
      )
      assert.deepEqual(positions(out), [7])
    }).pipe(Effect.provide(app)),
  )
})

describe("audit replay", () => {
  const replayed = (stretch: LogRange) => Effect.map(printed(replayLog(stretch)), ({ out }) => out)

  it.effect("prints a stretch of the log by positions, by times, and of one aggregate", () =>
    Effect.gen(function* () {
      yield* story
      assert.deepEqual(positions(yield* replayed({ part: "" })), [1, 2, 3, 4, 5])
      assert.deepEqual(positions(yield* replayed({ part: "", first: 2, last: 4 })), [2, 3, 4])
      const times = { from: Date.parse(hour(2)), to: Date.parse(hour(4)) }
      assert.deepEqual(positions(yield* replayed({ part: "", ...times })), [2, 3])
      const one = yield* replayed({ part: "system.election.watchdog" })
      assert.deepEqual(positions(one), [2, 5])
      const [first] = one.map((line) => JSON.parse(line))
      const log = yield* Log
      assert.equal(first.commit.prev, log.hashOf("system.election.watchdog"))
      assert.deepEqual(first.commit.commands, ["elect-watchdog-2"])
    }).pipe(Effect.provide(app)),
  )

  it.effect("keeps the pace of what happened, as many times faster as asked", () =>
    Effect.gen(function* () {
      yield* story
      // One hour takes one second.
      const replaying = yield* Effect.forkChild(replayed({ part: "", speed: 3600 }))
      yield* TestClock.adjust("3900 millis")
      assert.isUndefined(replaying.pollUnsafe())
      yield* TestClock.adjust("100 millis")
      assert.equal((yield* Fiber.join(replaying)).length, 5)
    }).pipe(Effect.provide(app)),
  )
})

describe("audit verify", () => {
  const options = { deciders: [Election], faults_max: 20, as_json: false }

  it.effect("says in a line that the log is whole", () =>
    Effect.gen(function* () {
      yield* story
      const { out } = yield* printed(verifyLog(options))
      assert.equal(out.length, 1)
      assert.match(out[0] ?? "", /^intact: 5 commits of 2 aggregates up to 5, 5 snapshots folded/)
    }).pipe(Effect.provide(app)),
  )

  it.effect("prints each fault and fails with code 1", () =>
    Effect.gen(function* () {
      yield* story
      const log = yield* Log
      const first = yield* log.load("system.election.publisher")
      if (first === undefined) throw new Error("there is one")
      const tampered = tamperedLog([{ ...changed(first, { prev: "other" }), position: 1 }])
      const { value, out } = yield* printed(
        Effect.result(Effect.provide(verifyLog(options), tampered)),
      )
      assert.isTrue(Result.isFailure(value) && Runtime.getErrorExitCode(value.failure) === 1)
      assert.match(out[0] ?? "", /^1 system\.election\.publisher chain: expected prev .*found prev/)
      assert.match(out.at(-1) ?? "", /^\d faults: /)
    }).pipe(Effect.provide(app)),
  )
})

const almanac = (...args: ReadonlyArray<string>) =>
  printed(
    Effect.result(
      Command.runWith(Command.withSubcommands(root, [audit, rebuild, log]), { version: "test" })(
        args,
      ),
    ),
  ).pipe(Effect.provide(NodeServices.layer))

const Api = HttpApi.make("system").add(Audit, AuditProofs)
const handlers = Layer.merge(
  HttpApiBuilder.group(Api, "audit", (group) =>
    group.handle("list", listAudit).handle("aggregate", auditAggregate),
  ),
  HttpApiBuilder.group(Api, "audit-proofs", (group) =>
    group
      .handle("export", exportAudit)
      .handle("head", () => auditHead)
      .handle("key", () => auditKey)
      .handle("log", () => logFigures),
  ),
)

/** A folder whose log holds the story; no server runs on it any more. */
const written = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const settings = given({ data: { dir: folder } })
  yield* Effect.provide(story, Layer.provide(host, exclusive(settings)), { local: true })
  return { folder, settings }
})

/** Checks the output of each command for the story, with or without a running server. */
const requests = Effect.fnUntraced(function* (folder: string) {
  const verb = (...args: ReadonlyArray<string>) =>
    almanac("--set", `data.dir=${folder}`, "audit", ...args)

  const list = yield* verb("list", "--subject", "publisher", "--json")
  assert.deepEqual(positions(list.out), [4, 3, 1])
  const page = yield* verb("list", "--limit", "2", "--order", "asc")
  assert.match(page.out[0] ?? "", /^POSITION .*\n1\.0 .*\n2\.0 [^\n]*$/)
  assert.deepEqual(page.err, ["More events exist: --marker 2.0"])
  const none = yield* verb("list", "--actor", "nobody")
  assert.deepEqual([none.out, none.err], [["No matching events."], []])
  const misspelt = yield* verb("list", "--type", "LeaderElectd")
  assert.match(misspelt.err.join("\n"), /^--type: .* did you mean LeaderElected\?$/)

  const then = yield* verb("state", "system.election.publisher", "--at", hour(3))
  const description = JSON.parse(then.out.join("\n"))
  assert.deepEqual([description.position, description.state.context], [3, { holder: "two" }])
  const now = yield* verb("state", "system.election.publisher")
  assert.equal(JSON.parse(now.out.join("\n")).position, 4)
  const early = yield* verb("state", "system.election.publisher", "--position", "0")
  const never = "system.election.publisher did not exist at that time."
  assert.deepEqual(failing(early.value), [2, never])
  const beyond = "Position 99999 does not exist yet: the log ends at position 5."
  const outside = [
    ["state", "system.election.publisher", "--position", "99999"],
    ["list", "--marker", "99999.0"],
    ["replay", "--first", "99999"],
    ["verify", "--until", "99999"],
  ]
  for (const args of outside) {
    const { value, out } = yield* verb(...args)
    assert.deepEqual([failing(value), out], [[2, beyond], []], args.join(" "))
  }
  const later = yield* verb("state", "system.election.publisher", "--at", "9999-01-01T00:00:00Z")
  const [code, why] = failing(later.value) ?? []
  assert.equal(code, 2)
  assert.match(`${why}`, /^--at 9999-01-01T00:00:00.000Z is in the future: it is /)
  const unknown = yield* verb("state", "a.b.c")
  assert.deepEqual(failing(unknown.value), [2, "a.b.c did not exist at that time."])

  const replay = yield* verb("replay", "--of", "system.election.watchdog", "--first", "2")
  assert.deepEqual(positions(replay.out), [2, 5])

  const verify = yield* verb("verify")
  assert.equal(verify.value._tag, "Success")
  assert.match(verify.out[0] ?? "", /^intact: 5 commits of 2 aggregates/)
  const program = yield* verb("verify", "--json")
  assert.equal(JSON.parse(program.out[0] ?? "").fault_count, 0)
})

describeWithServer("the audit commands", () => {
  it.live("work where nothing runs, with a server of their own", () =>
    Effect.scoped(Effect.flatMap(written, ({ folder }) => requests(folder))),
  )

  it.live("work with a running instance", () =>
    Effect.gen(function* () {
      const { folder, settings } = yield* written
      const running = Layer.provideMerge(
        SystemModel.layer(details).pipe(Layer.provide(sqlite(`${folder}/read-models`))),
        Layer.provideMerge(witnessing(settings), Layer.provideMerge(host, exclusive(settings))),
      )
      const body = Effect.gen(function* () {
        const model = yield* SystemModel
        const { servers, core } = yield* NatsServer
        const context = yield* Effect.context<Log | LogStanding | Notary | SystemModel>()
        const routes = Effect.map(
          HttpRouter.toHttpEffect(HttpApiBuilder.layer(Api).pipe(Layer.provide(handlers))),
          Effect.provideContext(context),
        )
        const { url } = yield* serveHttp([
          { name: "system", api: Api, routes, waitFor: model.waitFor },
        ])
        yield* publishInstance(folder, {
          url,
          nats: {
            url: servers.join(","),
            user: core.user ?? "",
            password: core.password ?? Redacted.make(""),
          },
          control_token: Redacted.make("admin"),
          pid: process.pid,
          started_at: hour(0),
        })
        yield* requests(folder)
      })
      yield* Effect.scoped(Effect.provide(body, running, { local: true }))
    }).pipe(Effect.scoped),
  )

  it.live("say with code 2 when the log could not be verified at all", () =>
    Effect.gen(function* () {
      const { folder, settings } = yield* written
      const locked = almanac("--set", `data.dir=${folder}`, "audit", "verify")
      const { value } = yield* Effect.provide(locked, exclusive(settings), { local: true })
      assert.isTrue(Result.isFailure(value) && Runtime.getErrorExitCode(value.failure) === 2)
    }).pipe(Effect.scoped),
  )
})

/** Seals the log's commits, and waits until the seal is visible. */
const sealing = Effect.gen(function* () {
  const log = yield* Log
  const process = yield* Effect.forkChild(runProcess(checkpointer({ commits: 1, seconds: 0 })))
  yield* Effect.repeat(Effect.delay(log.load(checkpoint_stream), "20 millis"), {
    until: (last) => last !== undefined,
  })
  yield* Fiber.interrupt(process)
})

/** The commands in the guide; `test/docs/guide-audit.test.ts` covers its shell commands. */
const examples = readFileSync(new URL("../../docs/guide-audit.md", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => /^\.\/almanac (audit|rebuild|log) (?!follow|.*"\$)/.test(line))
  .map((line) => line.split(" ").slice(1))

describeWithServer("the guide to the audit", () => {
  it.live("shows commands that work", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const join = Effect.gen(function* () {
        yield* elect("system-publisher", "one", 1)
        const commands = yield* Commands
        const origin = { command_id: "join", actor: "admin", at: hour(11) }
        const where = { address: "10.0.0.1:9797", capacity_bytes: "1000", vnodes_per_node: 128 }
        const command = JoinNode.make({ node_id: NodeId.make("a"), ...where })
        yield* commands.send(origin, address(Cluster, "almanac", command))
      })
      const app = Layer.provideMerge(host, exclusive(given({ data: { dir: folder } })))
      yield* Effect.provide(Effect.andThen(join, sealing), app, { local: true })
      assert.isAbove(examples.length, 20)
      // This log is shorter than the one that the guide describes.
      for (const command of examples) {
        const words = command.map((word) =>
          word.replace(/^.*\.ndjson/, `${folder}/$&`).replace(/^(500|5)$/, "2"),
        )
        const { value, out } = yield* almanac("--set", `data.dir=${folder}`, ...words)
        assert.equal(value._tag, "Success", command.join(" "))
        const silent = command.includes("--json") || command.includes("--speed")
        if (!silent) assert.isNotEmpty(out, command.join(" "))
      }
    }).pipe(Effect.scoped),
  )
})

const words = "list follow replay state verify export prove head key diff".split(" ")

describe("each audit command", () => {
  for (const name of words) {
    it.effect(`${name} explains itself with an example`, () =>
      Effect.gen(function* () {
        const { out } = yield* almanac("audit", name, "--help")
        assert.include(out.join("\n"), `almanac audit ${name}`)
        assert.include(out.join("\n"), "EXAMPLES")
      }),
    )
  }

  const malformed = [
    ["list", "--from", "yesterday"],
    ["list", "--limit", "0"],
    ["list", "--limit", "1001"],
    ["list", "--marker", "3"],
    ["list", "--order", "newest"],
    ["list", "--service", "a.b"],
    ["replay", "--of", "a.b.c.d"],
    ["replay", "--first", "0"],
    ["replay", "--speed", "0"],
    ["state", "main"],
    ["verify", "--faults", "0"],
    ["verify", "--until", "0"],
  ]
  for (const args of malformed) {
    it.effect(`refuses ${args.join(" ")}`, () =>
      Effect.gen(function* () {
        const { value } = yield* almanac("audit", ...args)
        assert.equal(value._tag, "Failure")
      }),
    )
  }
})
