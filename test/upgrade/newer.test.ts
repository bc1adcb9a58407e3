/**
 * Data of a newer release, read by this release while both run: it processes what it knows, and
 * leaves the rest to the other.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { makeMembersCache, membership } from "#actors/blob-storage/members.ts"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { runProcess } from "#actors/process.ts"
import { type Commit, Log } from "#events/log.ts"
import { logMemory } from "#journal"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { type Blueprint, openDatabase, project } from "#projections/read-model.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"
import { type ClusterCommand, JoinNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import type { Message } from "#schemas/message.ts"
import { details } from "#server/audit-details.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../world/programs/nats.ts"

const at = "2026-11-23T00:00:00.000Z"
const newer = 99

const withLog = <A, E>(program: Effect.Effect<A, E, Log | Commands>) =>
  program.pipe(Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory))))

const joining = (node_id: string): ClusterCommand =>
  JoinNode.make({
    node_id: NodeId.make(node_id),
    address: "127.0.0.1:1",
    capacity_bytes: "1",
    vnodes_per_node: 8,
  })

const join = Effect.fnUntraced(function* (name: string, node_id: string) {
  const commands = yield* Commands
  const origin = { command_id: `${name}-${node_id}`, actor: "test", at }
  return yield* commands.send(origin, address(Cluster, name, joining(node_id)))
})

/** An event as stored in the log. */
interface Told extends Message {
  readonly [field: string]: unknown
}

/** Appends a commit of another release to a cluster's stream. */
const byNewer = Effect.fnUntraced(function* (
  name: string,
  events: ReadonlyArray<Told>,
  change: (snapshot: Commit["snapshot"]) => Commit["snapshot"],
) {
  const log = yield* Log
  const stream = `blob-storage.cluster.${name}`
  const last = yield* log.load(stream)
  if (last === undefined) throw new Error(`${stream} is empty`)
  const { position, hash, commit } = last
  const snapshot = change(commit.snapshot)
  const next = { ...commit, events, snapshot, commands: ["newer"], prev: hash }
  yield* log.append([{ stream, expected: position, commit: next }])
})

/** An event type unknown to this release. */
const unknown = { type: "NodePainted", node_id: "a", color: "red" }

const rowsOf = Effect.fnUntraced(function* <Tables>(blueprint: Blueprint<Tables>, table: string) {
  const folder = yield* temporaryFolder
  const database = yield* Effect.provide(openDatabase(blueprint), sqlite(folder), { local: true })
  const commits = yield* Stream.runCollect((yield* Log).read(""))
  yield* project(database, blueprint, commits)
  assert.equal(database.checkpoint().position, commits.at(-1)?.position, "nothing holds it up")
  const rows = (yield* database.dump)[table] ?? []
  return rows.map((row): Record<string, unknown> => JSON.parse(row))
})

describe("events of a newer release", () => {
  it.effect("do not hold a read model up, and the audit lists them", () =>
    withLog(
      Effect.gen(function* () {
        yield* join("one", "a")
        const gone = { type: "NodeLeft", node_id: "a", painted_until: "2030" }
        const raise = (snapshot: Commit["snapshot"]) => ({ ...snapshot, machine: newer })
        yield* byNewer("one", [unknown], raise)
        yield* join("two", "b")
        yield* byNewer("one", [{ type: "NodeLeaveStarted", node_id: "a" }, gone], raise)
        const nodes = yield* rowsOf(blob_storage, "blob_storage_node")
        assert.deepEqual(
          nodes.map(({ node_id, state }) => [node_id, state]),
          [["b", "active"]],
        )
        const events = yield* rowsOf(system(details), "system_audit_event")
        assert.isTrue(events.some(({ type }) => type === "NodePainted"))
      }).pipe(Effect.scoped),
    ),
  )
  it.live("make their aggregate one that does not answer here, and no other", () =>
    withLog(
      Effect.gen(function* () {
        yield* join("one", "a")
        yield* byNewer("one", [unknown], (snapshot) => ({ ...snapshot, machine: newer }))
        const failure = yield* Effect.flip(join("one", "b"))
        assert.equal(failure._tag, "Unavailable")
        assert.match(failure.detail, /A newer release has changed blob-storage\.cluster\.one/)
        yield* join("two", "b")
      }),
    ),
  )
  it.live("of types that this release knows are gone on from, by their history", () =>
    withLog(
      Effect.gen(function* () {
        yield* join("one", "a")
        const painted = { type: "NodeLeaveStarted", node_id: "a", color: "red" }
        const context = { anything: true }
        yield* byNewer("one", [painted], (snapshot) => ({ ...snapshot, machine: newer, context }))
        const position = yield* join("one", "b")
        const last = yield* (yield* Log).load("blob-storage.cluster.one")
        assert.equal(last?.position, position)
        assert.isBelow(last?.commit.snapshot.machine ?? newer, newer)
        const state = Cluster.restore(
          last?.commit.snapshot ?? { machine: 0, value: "", context: {} },
        )
        const nodes: ReadonlyArray<{ node_id: string; state: string }> = state?.context.nodes
        assert.deepEqual(
          nodes.map(({ node_id, state }) => [node_id, state]),
          [
            ["a", "leaving"],
            ["b", "active"],
          ],
        )
      }),
    ),
  )
  it.live("let a process wait, which goes on when it can read what is last", () =>
    withLog(
      Effect.gen(function* () {
        yield* join("one", "a")
        const held = makeMembersCache("a")
        const following = yield* Effect.forkChild(runProcess(membership("one", held)))
        const knows = (names: string) =>
          Effect.sync(() => held.members().active.map(({ node_id }) => node_id)).pipe(
            Effect.delay(5),
            Effect.repeat({ until: (found) => found.join() === names, times: 4000 }),
            Effect.map((found) => assert.equal(found.join(), names)),
          )
        yield* knows("a")
        const log = yield* Log
        const before = yield* log.load("blob-storage.cluster.one")
        yield* byNewer("one", [unknown], (snapshot) => ({ ...snapshot, machine: newer }))
        // The newer release continues with a snapshot that this one can read.
        const joined = { type: "NodeChanged", node_id: "a", address: "127.0.0.1:2" }
        yield* byNewer("one", [{ ...joined, capacity_bytes: "1", weight_percent: 100 }], () => {
          if (before === undefined) throw new Error("there was a commit")
          return before.commit.snapshot
        })
        yield* Effect.suspend(() => Effect.succeed(held.position())).pipe(
          Effect.delay(5),
          Effect.repeat({ until: (position) => position === 3, times: 4000 }),
        )
        assert.equal(held.position(), 3)
        assert.isUndefined(following.pollUnsafe())
        yield* Fiber.interrupt(following)
      }),
    ),
  )
})
