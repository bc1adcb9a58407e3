/**
 * Every projection and query of the read models that PostgreSQL supports, on it and on SQLite: for
 * the same log, both hold the same rows and return the same results.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import type { Kysely } from "kysely"
import { machine as cluster } from "#actors/blob-storage/cluster.ts"
import { machine as webhook } from "#actors/system/webhook.ts"
import { BlobDeleted, BlobLost, BlobStored } from "#events/blob-storage/volume.ts"
import type { Entry, Recorded } from "#events/log.ts"
import { quarantine_stream, UnreadableAcknowledged } from "#events/system/quarantine.ts"
import {
  WebhookChanged,
  WebhookCreated,
  WebhookDeleted,
  WebhookDeliveriesAbandoned,
  WebhookDisabled,
  WebhookEnabled,
  WebhookPaused,
  WebhookRedeliveryEnded,
  WebhookRedeliveryStarted,
  WebhookSecretRotated,
} from "#events/system/webhook.ts"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { findCluster, listNodes } from "#projections/blob-storage/node.ts"
import { findVolume, listPolicies } from "#projections/blob-storage/volume.ts"
import { findBackup, listRetainable } from "#projections/share-protection/backup.ts"
import {
  type ShareProtectionTables,
  blueprint as share_protection,
} from "#projections/share-protection/blueprint.ts"
import { findDomain } from "#projections/share-protection/domain.ts"
import { findJob } from "#projections/share-protection/job.ts"
import { knownDomains } from "#projections/share-protection/known-domain.ts"
import { findPolicy, listSchedules } from "#projections/share-protection/policy.ts"
import { findReceipt } from "#projections/share-protection/receipt.ts"
import { findReconciliation } from "#projections/share-protection/reconciliation.ts"
import { findRestore } from "#projections/share-protection/restore.ts"
import { findRollout } from "#projections/share-protection/rollout.ts"
import { findScheduler } from "#projections/share-protection/scheduler.ts"
import { statisticsOf } from "#projections/share-protection/statistics.ts"
import { findTarget } from "#projections/share-protection/target.ts"
import { findTargetTemplate } from "#projections/share-protection/target-template.ts"
import { usageOf } from "#projections/share-protection/usage.ts"
import { findWorker } from "#projections/share-protection/worker.ts"
import { listEvents } from "#projections/system/audit.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"
import { countUnreadable } from "#projections/system/quarantine.ts"
import {
  countLetters,
  countWebhooks,
  findWebhook,
  listLetters,
  listWebhooks,
} from "#projections/system/webhook.ts"
import { blueprint as system_webhook } from "#projections/system/webhook-model.ts"
import { BlobId } from "#schemas/blob-storage/blob.ts"
import type { Message } from "#schemas/message.ts"
import { DomainId } from "#schemas/share-protection/id.ts"
import { details } from "#server/audit-details.ts"
import { at, eachEvent } from "../world/blob-storage/cluster-events.ts"
import { histories } from "../world/histories.ts"
import { describePostgres, Postgres } from "../world/programs/postgres.ts"
import { choices, fill, listings } from "../world/share-protection/listed.ts"
import { answers, idOf, kinds, logOf, stepsOf } from "../world/share-protection/past.ts"
import { recorded, second } from "../world/share-protection/read-model.ts"
import { domain_id, policy_id } from "../world/share-protection/samples.ts"
import {
  completed as enrolled,
  measured,
  created as target_created,
} from "../world/share-protection/target-samples.ts"
import { both } from "./both-databases.ts"

/** Number of share protection logs; each has up to 120 commits of all its aggregates. */
const runs = 4

/** Number of shortest histories of a chart. */
const histories_max = 150

/** A commit of these events for an aggregate of any service. */
const committed = (position: number, stream: string, events: ReadonlyArray<Message>): Recorded => ({
  ...recorded(position, "", at, events),
  stream,
})

const firstOf = function* <A>(all: Iterable<A>, count: number) {
  let n = 0
  for (const one of all) {
    if (n++ >= count) return
    yield one
  }
}

const id = BlobId.make("00112233445566778899aabbccddeeff")
const blob = { id, size: 2 ** 40, checksum: "c2hhMjU2", at: "1763640000000000001", actor: "a" }

/** Facts of one volume with two policies; some are of copies of unknown blobs. */
const factOf = (cursor: number) => {
  const policy =
    cursor % 3 === 0 ? "REPLICATION_POLICY_NONE" : ("REPLICATION_POLICY_REPLICA3" as const)
  const fact = { ...blob, policy, after: cursor - 1, cursor, request_id: "r", correlation_id: "c" }
  if (cursor % 5 === 0) return BlobLost.make(fact as never)
  return cursor % 4 === 1 ? BlobDeleted.make(fact as never) : BlobStored.make(fact as never)
}

const letter = {
  sequence: 9,
  event_id: "4.0",
  event_type: "blob_stored",
  event_subject: "b",
  attempts: 12,
  first_failed_at: at,
  detail: 'It said "no"?',
}
const created = WebhookCreated.make({
  url: "https://example.com/hook",
  description: "ä",
  types: ["t"],
  services: [],
  project_id: "p1",
  enabled: true,
  after: 7,
  key_id: "0123456789abcdef",
})
const hook_events = [
  created,
  WebhookCreated.make({ ...created, project_id: null, enabled: false }),
  WebhookChanged.make({ url: "https://example.com/other", types: ["a", "b"] }),
  WebhookDisabled.make({ reason: "gone", detail: "It answered 410." }),
  WebhookPaused.make({}),
  WebhookEnabled.make({}),
  WebhookSecretRotated.make({ key_id: "fedcba9876543210", previous_until: at }),
  WebhookDeliveriesAbandoned.make({ letters: [letter, { ...letter, sequence: 10 }] }),
  WebhookRedeliveryStarted.make({ sequences: [9] }),
  WebhookRedeliveryEnded.make({ sequence: 9, is_delivered: true, detail: "" }),
  WebhookRedeliveryEnded.make({ sequence: 9, is_delivered: false, detail: "500" }),
  WebhookDeleted.make({}),
]

type Find = (db: Kysely<ShareProtectionTables>, id: string) => Effect.Effect<object | undefined>

/** A query by an id of its own kind. */
const byId =
  <Id extends string>(
    find: (db: Kysely<ShareProtectionTables>, id: Id) => Effect.Effect<object | undefined>,
  ): Find =>
  (db, id) =>
    // The id comes from a list of the same kind.
    find(db, id as Id)

/** The query that finds one row of a list by its id. */
const finders: Readonly<Record<string, Find>> = {
  backups: byId(findBackup),
  jobs: byId(findJob),
  policies: byId(findPolicy),
  restores: byId(findRestore),
  rollouts: byId(findRollout),
  targets: byId(findTarget),
  templates: byId(findTargetTemplate),
  workers: byId(findWorker),
}

/** Names whose byte order differs from their alphabetical order. */
const nameOf = (n: number) => `${n % 2 === 0 ? "w" : "W"}${n}`

/** The folders of these services' queries, and the tests that run them on both databases. */
const folders = ["share-protection", "blob-storage", "system"].map((one) => `projections/${one}`)
const askers = [
  "test/projections/both-databases.test.ts",
  "test/world/share-protection/listed.ts",
  "test/world/share-protection/past.ts",
]
const declared = /^export const (\w+) = (?:Effect\.fnUntraced\(function\* )?\(\s*db: Kysely</gm

describe("every query", () => {
  it("is tested on both databases", () => {
    const texts = askers.map((path) => readFileSync(path, "utf8")).join("")
    const queries = folders.flatMap((folder) =>
      readdirSync(folder).flatMap((name) =>
        [...readFileSync(join(folder, name), "utf8").matchAll(declared)].map(([, query]) => query),
      ),
    )
    assert.isAbove(queries.length, 30)
    assert.deepEqual(
      queries.filter((query) => !new RegExp(`\\b${query}\\(|\\(${query}\\)`).test(texts)),
      [],
    )
  })
})

describePostgres("SQLite and PostgreSQL", () => {
  layer(Postgres.layer, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect("show of any log of share protection the same, now and at any time", () =>
      Effect.gen(function* () {
        const seed = Number(process.env.ALMANAC_SEED ?? 142)
        for (const steps of fc.sample(stepsOf(...kinds), { seed, numRuns: runs })) {
          const log = logOf(steps)
          const { tell, agree, answer } = yield* both(share_protection)
          for (let from = 0; from < log.length; from += 7) yield* tell(log.slice(from, from + 7))
          assert.isAbove(yield* agree, 1, `seed ${seed}`)
          yield* answer("now", (db) => answers(db))
          for (const { commit } of log.filter((_, i) => i % 9 === 0)) {
            yield* answer(commit.at, (db) => answers(db, commit.at))
          }
          yield* answer("domain", (db) => findDomain(db, domain_id))
          const domains = [domain_id, DomainId.make("misspelt")]
          yield* answer("known domains", (db) => knownDomains(db, domains))
          yield* answer("reconciliation", (db) => findReconciliation(db))
          yield* answer("standing", (db) => statisticsOf(db))
          yield* answer("scheduler", (db) => findScheduler(db))
          yield* answer("receipt", (db) => findReceipt(db, "c", idOf("backup", 1)))
          yield* answer("schedules", (db) =>
            Effect.map(listSchedules(db), (rows) => rows.map((row) => JSON.stringify(row)).sort()),
          )
          yield* answer("retainable", (db) =>
            Effect.map(listRetainable(db, policy_id, 100), (rows) =>
              rows.map((row) => JSON.stringify(row)).sort(),
            ),
          )
        }
      }),
    )

    it.effect("return the same pages for each listing and filter", () =>
      Effect.gen(function* () {
        const { tell, agree, answer } = yield* both(share_protection)
        const log: Array<Recorded> = []
        yield* fill({
          tell: (stream, at_s, ...events) =>
            Effect.sync(() => {
              log.push(recorded(log.length + 1, stream, second(at_s), events))
            }),
        })
        // Shared targets have no project, and come first.
        for (const n of [1, 2]) {
          const shared = { ...target_created, project_id: null }
          const stream = `target.${idOf("target", 90 + n)}`
          log.push(recorded(log.length + 1, stream, second(n), [shared, enrolled, measured]))
        }
        yield* tell(log)
        assert.isAbove(yield* agree, 100)
        const { queued } = yield* answer("standing", (db) => statisticsOf(db))
        assert.isNotNull(queued)
        const usage = yield* answer("usage", (db) => usageOf(db, {}))
        assert.isNull(usage[0]?.project_id)
        assert.isAbove(usage[0]?.stored_bytes ?? 0, 0)
        for (const [name, { list, filters }] of Object.entries(listings)) {
          const find = finders[name] ?? assert.fail(`nothing finds one of ${name}`)
          const some = yield* answer(name, (db) => list(db, {}, { limit: 5 }))
          for (const { id } of some.rows) {
            assert.isDefined(yield* answer(`${name} ${id}`, (db) => find(db, id)))
          }
          for (const filter of choices(filters)) {
            const what = `${name} ${JSON.stringify(filter)}`
            const { next_marker } = yield* answer(what, (db) => list(db, filter, { limit: 3 }))
            if (next_marker === null) continue
            yield* answer(what, (db) => list(db, filter, { limit: 3, marker: next_marker }))
          }
        }
      }),
    )

    it.effect("show each short history of a cluster, and what its volumes hold", () =>
      Effect.gen(function* () {
        const { tell, agree, answer } = yield* both(blob_storage)
        const walked = [...firstOf(histories(cluster, eachEvent, 6), histories_max)]
        const log = walked.map(({ history }, n) =>
          committed(n + 1, `blob-storage.cluster.c${n % 50}x${n}`, history),
        )
        for (let n = 0; n < 20; n++) {
          const facts = Array.from({ length: 6 }, (_, i) => factOf(6 * n + i + 1))
          log.push(committed(log.length + 1, `blob-storage.volume.v${n % 3}`, facts))
        }
        yield* tell(log)
        assert.isAbove(yield* agree, histories_max / 2)
        for (const { stream } of log.slice(-60)) {
          const name = stream.split(".").at(-1) ?? ""
          yield* answer(stream, (db) => findCluster(db, name))
          yield* answer(stream, (db) => listNodes(db, name))
          yield* answer(stream, (db) => findVolume(db, name))
        }
        const policiesOf =
          (names: ReadonlyArray<string>) => (db: Parameters<typeof listPolicies>[0]) =>
            Effect.map(listPolicies(db, names), (rows) =>
              rows.map((row) => JSON.stringify(row)).sort(),
            )
        assert.isAbove((yield* answer("policies", policiesOf(["v0", "v1", "v2"]))).length, 0)
        assert.isEmpty(yield* answer("no policies", policiesOf([])))
      }),
    )

    it.effect("show each short history of a webhook, and its letters", () =>
      Effect.gen(function* () {
        const { tell, agree, answer } = yield* both(system_webhook)
        const walked = [...firstOf(histories(webhook, hook_events, 5), 4 * histories_max)]
        yield* tell(
          walked.map(({ history }, n) => committed(n + 1, `system.webhook.${nameOf(n)}`, history)),
        )
        assert.isAbove(yield* agree, histories_max)
        for (const project of [null, "p1", "nobody"]) {
          yield* answer("count", (db) => countWebhooks(db, project))
          yield* answer("list", (db) => listWebhooks(db, project, { limit: 20, marker: "W2" }))
        }
        for (let n = 0; n < walked.length; n += 20) {
          yield* answer("find", (db) => findWebhook(db, nameOf(n)))
          yield* answer("letters", (db) => listLetters(db, nameOf(n), { limit: 1 }))
          yield* answer("waiting", (db) =>
            listLetters(db, nameOf(n), { limit: 5, marker: 9 }, { is_waiting: true }),
          )
        }
        assert.isAbove(yield* answer("all letters", (db) => countLetters(db)), 0)
      }),
    )

    it.effect("show the audit of a log, by every filter and in both orders", () =>
      Effect.gen(function* () {
        const blueprint = system(details)
        const { tell, agree, answer } = yield* both(blueprint)
        const [steps = []] = fc.sample(stepsOf(...kinds), { seed: 7, numRuns: 1 })
        const log = logOf(steps)
        yield* tell(log)
        assert.isAbove(yield* agree, log.length)
        const from = Date.parse(second(10))
        const to = Date.parse(second(60))
        for (const filter of [
          {},
          { from },
          { to },
          { from, to },
          { service: "share-protection" },
          { aggregate: "backup" },
          { type: "BackupRequested" },
          { actor: "test", from },
          { subject: idOf("backup", 1) },
          { request_id: "none" },
          { correlation_id: "none" },
        ]) {
          for (const order of ["asc", "desc"] as const) {
            const what = `${JSON.stringify(filter)} ${order}`
            const first = yield* answer(what, (db) => listEvents(db, filter, { order, limit: 5 }))
            const marker = first.next_marker
            yield* answer(what, (db) => listEvents(db, filter, { order, limit: 5, marker }))
          }
        }
        // The last page has no marker, even if it is full.
        const request = { aggregate: "backup" }
        const page = (limit: number) =>
          answer(`limit ${limit}`, (db) => listEvents(db, request, { order: "asc", limit }))
        const { events } = yield* page(1000)
        assert.isUndefined((yield* page(events.length)).next_marker)
        assert.isDefined((yield* page(events.length - 1)).next_marker)
        // Commits that no release wrote; the first of them was acknowledged.
        const next = log.length + 1
        const nonsense = (position: number): Entry => ({
          position,
          stream: "weather.\0.x",
          hash: `${position}`,
          bytes: Buffer.from("oops"),
          unreadable: "it is no JSON",
        })
        const known = { through: next, commits: 1, reason: "a test" }
        yield* tell([
          nonsense(next),
          committed(next + 1, quarantine_stream, [UnreadableAcknowledged.make(known)]),
          nonsense(next + 2),
        ])
        yield* agree
        const counts = yield* answer("unreadable", (db) => countUnreadable(db))
        assert.deepEqual(counts, { acknowledged: 1, open: 1 })
      }),
    )
  })
})
