/**
 * A log of the previous release with all five services, read by this release: intact, with the same
 * read models, and writable. `node test/upgrade/renew.ts` recreates it for a release.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Cluster } from "#actors/blob-storage/cluster.ts"
import { address, Commands } from "#actors/commands.ts"
import type { AnyDecider } from "#actors/decider.ts"
import { host, stateAfter } from "#actors/host.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { verify } from "#actors/system/verification.ts"
import { Log, parseStream, type Recorded } from "#events/log.ts"
import { logMemory } from "#journal"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { blueprint as capital_pressure } from "#projections/capital-pressure/blueprint.ts"
import { type Blueprint, openDatabase, project } from "#projections/read-model.ts"
import { blueprint as share_protection } from "#projections/share-protection/blueprint.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"
import { JoinNode } from "#schemas/blob-storage/cluster.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"
import { DeletePolicy } from "#schemas/share-protection/policy.ts"
import { deciders } from "#server/aggregate-kinds.ts"
import { details } from "#server/audit-details.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../world/programs/nats.ts"
import { readExpected, readLog } from "./fixture.ts"
import { rowsOf } from "./rows.ts"

const lines = readLog()
const expected = readExpected()

const byName = (one = "", other = "") => (one < other ? -1 : 1)

/** Tables of the previous release that were removed intentionally, or that are internal. */
const dropped: ReadonlySet<string> = new Set(["checkpoint"])

/** The log of the previous release, commit by commit. */
const written = Effect.gen(function* () {
  const log = yield* Log
  const lasts = new Map<string, number>()
  for (const { stream, position, hash, commit } of lines) {
    const [appended] = yield* log.append([{ stream, expected: lasts.get(stream) ?? 0, commit }])
    assert.deepEqual(appended, { position, hash }, `${stream} is stored as it was`)
    lasts.set(stream, position)
  }
  return yield* Stream.runCollect(log.read(""))
})

const withLog = <A, E>(program: Effect.Effect<A, E, Log | Commands>) =>
  program.pipe(Effect.provide(Layer.fresh(Layer.provideMerge(host, logMemory))), Effect.orDie)

/** Compares a read model's tables for these commits with those of the previous release. */
const compare = Effect.fnUntraced(function* <Tables>(
  blueprint: Blueprint<Tables>,
  commits: ReadonlyArray<Recorded>,
) {
  const files = Object.keys(expected).filter((name) => name.startsWith(blueprint.service))
  assert.equal(files.length, 1, `${blueprint.service} had one file`)
  const folder = yield* temporaryFolder
  const database = yield* Effect.provide(openDatabase(blueprint), sqlite(folder), { local: true })
  yield* project(database, blueprint, commits)
  const dump = yield* database.dump
  let compared = 0
  for (const [table, rows] of Object.entries(expected[files[0] ?? ""] ?? {})) {
    if (dropped.has(table)) continue
    const now = dump[table]
    assert.isDefined(now, `${table} exists`)
    const columns = Object.keys(JSON.parse(rows[0] ?? "{}"))
    const previous = rowsOf(rows, columns)
    assert.deepEqual(rowsOf(now ?? [], columns).slice(0, previous.length), previous, table)
    assert.equal(now?.length, rows.length, table)
    compared += rows.length
  }
  return compared
})

const streamOf = (kind: string) => {
  const found = lines.find(({ stream }) => parseStream(stream).name === kind)
  assert.isDefined(found, `there is a ${kind}`)
  return parseStream(found?.stream ?? "").id
}

/** Deletes the policy of this stream. */
const deletionOf = (id: string) => {
  const events = lines
    .filter(({ stream }) => stream.endsWith(`.policy.${id}`))
    .flatMap(({ commit }) =>
      commit.events.map((event) => Schema.decodeUnknownSync(Policy.event)(event)),
    )
  const defined = events.find(({ type }) => type === "PolicyDefined")
  if (defined?.type !== "PolicyDefined") throw new Error("there is no policy")
  return DeletePolicy.make({ policy_id: defined.id, project_id: defined.project_id })
}

describe("a log of the release before", () => {
  it("has something of each service", () => {
    const services = new Set(lines.map(({ stream }) => stream.split(".")[0]))
    const all = ["blob-storage", "capital-pressure", "carrier-search", "plant-disease"]
    assert.deepEqual([...services].toSorted(byName), [...all, "share-protection", "system"])
    const kinds = new Set(lines.flatMap(({ commit }) => commit.events.map(({ type }) => type)))
    assert.isAbove(kinds.size, 40)
  })
  it.effect("is whole, with every snapshot what its history comes to", () =>
    withLog(
      Effect.gen(function* () {
        yield* written
        const found = yield* verify({ deciders })
        assert.deepEqual(found.faults, [])
        assert.equal(found.commits, lines.length)
        assert.equal(found.folded, lines.length)
      }),
    ),
  )
  it.effect("is gone on from: each aggregate's state is known", () =>
    withLog(
      Effect.gen(function* () {
        yield* written
        const log = yield* Log
        const lasts = yield* Stream.runCollect(log.lasts(""))
        for (const recorded of lasts) {
          const { name } = parseStream(recorded.stream)
          const decider = deciders.find((one: AnyDecider) => one.name === name)
          assert.isDefined(decider, `${name} is a kind of this release`)
          if (decider === undefined) continue
          const { machine } = decider.save(yield* stateAfter(log, decider, recorded))
          assert.isAtLeast(machine, recorded.commit.snapshot.machine)
        }
      }),
    ),
  )
  it.effect("is shown as the release before showed it", () =>
    withLog(
      Effect.gen(function* () {
        const commits = yield* written
        const compared = [
          yield* compare(blob_storage, commits),
          yield* compare(share_protection, commits),
          yield* compare(capital_pressure, commits),
          yield* compare(system(details), commits),
        ]
        assert.isTrue(
          compared.every((rows) => rows > 0),
          `${compared}`,
        )
      }).pipe(Effect.scoped),
    ),
  )
  it.effect("is written on, and stays whole", () =>
    withLog(
      Effect.gen(function* () {
        yield* written
        const commands = yield* Commands
        const node = {
          node_id: NodeId.make("another"),
          address: "127.0.0.1:1",
          capacity_bytes: "1",
          vnodes_per_node: 128,
        }
        const at = "2026-11-23T00:00:00.000Z"
        const origin = (command_id: string) => ({ command_id, actor: "test", at })
        const cluster = streamOf("blob-storage.cluster")
        yield* commands.send(origin("join"), address(Cluster, cluster, JoinNode.make(node)))
        const share = streamOf("share-protection.policy")
        yield* commands.send(origin("delete"), address(Policy, share, deletionOf(share)))
        const found = yield* verify({ deciders })
        assert.deepEqual(found.faults, [])
        assert.equal(found.folded, lines.length + 2)
      }),
    ),
  )
})
