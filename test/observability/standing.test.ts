/** The overall state, as reported to operators by metrics. Source: issue 10 §7. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { WebhookCursors } from "#actors/system/webhooks/cursors.ts"
import { Log, type Recorded } from "#events/log.ts"
import { shareProtectionMetrics } from "#gateway/share-protection/metrics.ts"
import { collectMetrics, readModelMetrics, webhookMetrics } from "#gateway/system/metrics.ts"
import { type Operated, ReadModels } from "#gateway/system/read-models.ts"
import { PublishedEvents } from "#projections/published-events.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import { ShareProtectionModel } from "#projections/share-protection/blueprint.ts"
import { WebhookModel, blueprint as webhook_blueprint } from "#projections/system/webhook-model.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../world/programs/nats.ts"
import { about, assigned, failed, started, until } from "../world/share-protection/job-samples.ts"
import { emptyModel, recorded, second } from "../world/share-protection/read-model.ts"
import {
  backup,
  backup_id,
  jobId,
  policy,
  project_id,
  share_id,
  snapshot,
  target_id,
  uuid,
} from "../world/share-protection/samples.ts"
import { created } from "../world/share-protection/target-samples.ts"
import { parsed } from "./exposition.ts"

/** The values of an exposition by metric and state. */
const valuesOf = (text: string) => {
  const families = parsed(text)
  return (name: string, state?: string) =>
    families
      .get(`almanac_${name}`)
      ?.samples.find(({ labels }) => state === undefined || labels.state === state)?.value
}

const now_s = 10_000
const atNow = TestClock.setTime(Date.parse(second(now_s)))

/** The metrics for a Shares service whose list succeeds or fails as given. */
const reported = (list: Shares["Service"]["list"]) =>
  Effect.gen(function* () {
    const model = yield* emptyModel
    const { db, reader, tell } = model
    yield* tell(`target.${target_id}`, 0, created)
    const queued = { type: "JobQueued", ...about } as const
    yield* tell(`job.${jobId(1)}`, 100, queued)
    yield* tell(`job.${jobId(1)}`, 5_000, assigned)
    yield* tell(`job.${jobId(2)}`, 200, queued, assigned)
    yield* tell(`job.${jobId(2)}`, 4_000, started)
    yield* tell(`job.${jobId(3)}`, 300, queued, ...until("transferring").slice(1), failed)
    yield* tell(`policy.${share_id}`, 0, { type: "PolicyDefined", ...policy })
    yield* tell(`backup.${backup_id}`, 0, { type: "BackupRequested", ...backup })
    yield* tell(`backup.${backup_id}`, 1_000, { type: "BackupCompleted", ...snapshot })
    for (const [n, end] of [
      [1, "RolloutHalted"],
      [2, "RolloutSucceeded"],
      [3, "RolloutHalted"],
    ] as const) {
      const stream = `rollout.${uuid(300 + n)}`
      yield* tell(stream, 0, { type: "RolloutCreated", image: "i", domain_ids: ["d"] })
      const pair = { old_worker_id: "o", new_worker_id: "n", domain_id: "d" }
      yield* tell(stream, 1, {
        type: end,
        ...(end === "RolloutHalted" && { ...pair, reason: "r" }),
      })
    }
    yield* atNow
    // The metrics use only the tables and the list of shares.
    const around = Context.make(ShareProtectionModel, { db, reader } as never).pipe(
      // The metrics use only the list.
      Context.add(Shares, { list } as never),
    )
    const { statistics: standing, coverage } = yield* Effect.provideContext(
      shareProtectionMetrics,
      around,
    )
    const stands = yield* standing
    const covers = yield* Effect.exit(coverage)
    const is_covered = Exit.isSuccess(covers)
    return { is_covered, value: valuesOf(stands + (is_covered ? covers.value : "")) }
  })

/** The metrics read only its id. */
const share = (n: number) => ({ id: uuid(n), project_id }) as never

describe("the metrics of share protection", () => {
  it.effect("count what there is by its state, and say since when the oldest waits", () =>
    Effect.gen(function* () {
      const { value } = yield* reported(Stream.make(share(1), share(50), share(51)))
      assert.deepEqual(
        ["queued", "provisioning_network", "error", "available"].map((state) =>
          value("jobs", state),
        ),
        [1, 1, 1, 0],
      )
      // A job that was assigned in between has waited since it was queued.
      assert.strictEqual(value("job_oldest_queued_seconds"), now_s - 100)
      assert.strictEqual(value("job_oldest_running_seconds"), now_s - 4_000)
      assert.strictEqual(value("rollouts_failed_total"), 2)
      assert.deepEqual([value("rollouts", "running"), value("rollouts", "succeeded")], [0, 1])
      assert.strictEqual(value("backups", "available"), 1)
      assert.strictEqual(value("targets", "pending"), 1)
    }).pipe(Effect.scoped),
  )

  it.effect("list unprotected shares, including those that only the service knows", () =>
    Effect.gen(function* () {
      const { value } = yield* reported(Stream.make(share(1), share(50), share(51)))
      assert.strictEqual(value("shares_protected"), 1)
      assert.strictEqual(value("shares_unprotected"), 2)
      assert.strictEqual(value("shares_without_backup"), 0)
      const taken_s = (Date.parse(snapshot.taken_at) - Date.parse(second(0))) / 1000
      assert.strictEqual(value("shares_oldest_backup_seconds"), now_s - taken_s)
    }).pipe(Effect.scoped),
  )

  it.effect("do not wait for a share service that takes its time", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkScoped(reported(Stream.never))
      yield* TestClock.adjust("2 seconds")
      // The metrics set a timeout once the tables are read, so advance the clock until they finish.
      while (fiber.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust("1 second")
      }
      const { value, is_covered } = yield* Fiber.join(fiber)
      assert.isTrue(is_covered)
      // The first scrape already has the metrics of the shares in the read model.
      assert.deepEqual([value("shares_protected"), value("shares_unprotected")], [1, 0])
      assert.strictEqual(value("shares_without_backup"), 0)
      assert.strictEqual(value("shares_restore_test_failed"), 0)
      assert.isAbove(value("shares_oldest_backup_seconds") ?? 0, 0)
      assert.strictEqual(value("rollouts_failed_total"), 2)
    }).pipe(Effect.scoped),
  )

  it.effect("leave out the coverage if the share service fails", () =>
    Effect.gen(function* () {
      const away = Stream.fail(new BackendUnavailable({ detail: "Manila is offline." }))
      const { value, is_covered } = yield* reported(away)
      assert.isFalse(is_covered, "the collector reports the failure")
      assert.isUndefined(value("shares_unprotected"))
      assert.strictEqual(value("rollouts_failed_total"), 2)
    }).pipe(Effect.scoped),
  )
})

/** A log of three commits, one second apart; nothing is written to it. */
const log = Context.make(Log, {
  head: () => Effect.succeed(3),
  read: (_: string, position = 0) =>
    Stream.fromIterable(
      [1, 2, 3]
        .filter((at) => at > position)
        .map((at): Recorded => recorded(at, "job.x", second(at), [])),
    ),
} as never)

const at = (position: number) => ({ part: "share-protection", position: Effect.succeed(position) })

describe("the metrics of read models", () => {
  it.effect("say how far behind the log each is, in positions and in time", () =>
    Effect.gen(function* () {
      // The metrics read only its position.
      const models = new Map([
        ["late", at(1)],
        ["early", at(3)],
      ]) as never
      yield* TestClock.setTime(Date.parse(second(12)))
      const text = yield* Effect.provideContext(readModelMetrics, log).pipe(
        Effect.provideService(ReadModels, models as ReadonlyMap<string, Operated>),
      )
      const lag = (name: string) =>
        parsed(text)
          .get(`almanac_read_model_${name}`)
          ?.samples.map(({ labels, value }) => [labels.read_model, value])
      assert.deepEqual(lag("position"), [
        ["late", 1],
        ["early", 3],
      ])
      assert.deepEqual(lag("lag_positions"), [
        ["late", 2],
        ["early", 0],
      ])
      // The second commit was appended at second 2.
      assert.deepEqual(lag("lag_seconds"), [
        ["late", 10],
        ["early", 0],
      ])
    }),
  )
})

/** Webhooks 1 to 3: the first has two dead letters, and the last is paused. */
const webhooks = Effect.gen(function* () {
  const around = yield* Layer.build(sqlite(yield* temporaryFolder))
  const database = yield* Effect.provideContext(openDatabase(webhook_blueprint), around)
  const letter = { event_id: "e", event_type: "t", event_subject: "s", attempts: 3 }
  const when = { first_failed_at: second(0), detail: "It answered 500." }
  const letters = [4, 5].map((sequence) => ({ sequence, ...letter, ...when }))
  const made = {
    url: "https://example.org/",
    description: "",
    types: [],
    services: [],
    after: 0,
    key_id: "0".repeat(16),
  }
  const tell = (position: number, n: number, ...events: Recorded["commit"]["events"]) => ({
    ...recorded(position, "", second(0), events),
    stream: `system.webhook.${uuid(n)}`,
  })
  yield* project(database, webhook_blueprint, [
    ...[1, 2, 3].map((n) =>
      tell(n, n, {
        ...{ type: "WebhookCreated", project_id: null, enabled: n < 3 },
        ...made,
        ...{ types: n === 2 ? ["rare"] : [] },
      }),
    ),
    tell(4, 1, { ...{ type: "WebhookDeliveriesAbandoned" }, ...{ letters } }),
  ])
  return { db: database.db, reader: database.reader }
})

describe("the metrics of webhooks", () => {
  it.effect("say how many there are, what waits, what fails and what was given up", () =>
    Effect.gen(function* () {
      const fresh = { replay: 0, last_success_ms: null, last_failure: null }
      const cursors: Readonly<Record<string, object>> = {
        [uuid(1)]: {
          ...fresh,
          read: 90,
          open: [{ sequence: 89, attempts: 1 }],
          failing_since_ms: 1,
        },
        // Its position is the last event that it wants, so it has no backlog.
        [uuid(2)]: { ...fresh, read: 7, open: [], failing_since_ms: null },
        // It is paused, so its old position does not count as backlog.
        [uuid(3)]: { ...fresh, read: 1, open: [], failing_since_ms: 1 },
      }
      // Only what the metrics use: the tables, the cursors, and the last event.
      const around = Context.make(WebhookModel, (yield* webhooks) as never).pipe(
        Context.add(WebhookCursors, {
          load: (id: string) => Effect.succeed({ cursor: cursors[id], change: 1 }),
          // The metrics use only these cursors.
        } as never),
        // The metrics use only these events.
        Context.add(PublishedEvents, {
          bounds: Effect.succeed({ first: 1, last: 100 }),
          // One event per second, none of them rare.
          next: (after: number, { types }: { readonly types: ReadonlyArray<string> }) =>
            Effect.succeed(
              types.includes("rare") ? undefined : { published_ms: (after + 1) * 1000 },
            ),
        } as never),
      )
      yield* TestClock.setTime(100_000)
      const text = yield* Effect.provideContext(webhookMetrics, around)
      const value = valuesOf(text)
      assert.deepEqual([value("webhooks", "active"), value("webhooks", "paused")], [2, 1])
      const lags = parsed(text).get("almanac_webhook_lag_seconds")?.samples
      assert.deepEqual(
        lags?.map(({ labels, value }) => [labels.webhook, value]),
        [
          [uuid(1), 11],
          [uuid(2), 0],
        ],
      )
      assert.strictEqual(value("webhooks_failing"), 1)
      assert.strictEqual(value("webhook_dead_letters"), 2)
      assert.strictEqual(value("published_events_sequence"), 100)
    }).pipe(Effect.scoped),
  )
})

describe("all metrics together", () => {
  it.effect("leave out what fails and what is slow, and say so", () =>
    Effect.gen(function* () {
      const body = yield* collectMetrics([
        {
          name: "well",
          text: Effect.succeed("# HELP almanac_a A.\n# TYPE almanac_a gauge\nalmanac_a 1\n"),
        },
        { name: "failing", text: Effect.fail("away") },
        { name: "broken", text: Effect.die(new Error("a defect")) },
        { name: "slow", text: Effect.never },
      ]).pipe(Effect.forkScoped)
      yield* TestClock.adjust("4 seconds")
      const text = yield* Fiber.join(body)
      const families = parsed(text)
      assert.strictEqual(families.get("almanac_a")?.samples.length, 1)
      assert.deepEqual(
        families
          .get("almanac_collector_up")
          ?.samples.map(({ labels, value }) => [labels.collector, value]),
        [
          ["well", 1],
          ["failing", 0],
          ["broken", 0],
          ["slow", 0],
        ],
      )
    }),
  )
})
