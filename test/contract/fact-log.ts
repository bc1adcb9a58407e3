/**
 * Contract of every kind of spooled fact: its aggregate, its published events, its audit entries.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import type { AnyStateMachine } from "xstate"
import type { Decider } from "#actors/decider.ts"
import { type FactContext, no_facts, withFact } from "#actors/fact-log.ts"
import { host } from "#actors/host.ts"
import { type FactKind, spooler } from "#actors/spooler.ts"
import { spoolMemory } from "#adapters/spool/memory.ts"
import type { Commit } from "#events/log.ts"
import { logMemory } from "#journal"
import { type Publication, publishedOf } from "#projections/published-events.ts"
import { listEvents } from "#projections/system/audit.ts"
import { SystemModel } from "#projections/system/blueprint.ts"
import { CloudEvent } from "#schemas/cloud-event.ts"
import type { Message } from "#schemas/message.ts"
import type { FactsOutOfOrder } from "#schemas/spooled.ts"
import { deciders } from "#server/aggregate-kinds.ts"
import { details } from "#server/audit-details.ts"
import { sqlite } from "#sqlite"
import { given } from "../world/given.ts"
import { histories } from "../world/histories.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { until } from "../world/spooled.ts"

const epoch = "01939d2c-1111-7000-8000-000000000001"
const other = "01939d2c-1111-7000-8000-000000000002"

interface Fact {
  readonly at: string
  readonly actor: string
  readonly request_id: string
  readonly correlation_id: string
}

interface Placed extends Message {
  readonly epoch: string
  readonly after: number
  readonly cursor: number
}

export interface Kind<F extends Fact, Command, Event extends Placed, State> {
  readonly kind: FactKind<F, Command, Event, State, FactsOutOfOrder>
  readonly machine: AnyStateMachine
  readonly fact: (n: number) => F
  readonly event: (placed: Omit<Placed, "type"> & F) => Event
  readonly publications: ReadonlyArray<Publication>
  readonly types: Readonly<
    Record<
      string,
      { readonly aggregate: string; readonly data: Schema.ConstraintCodec<unknown, unknown> }
    >
  >
  /** The only published type: its subject for fact 1, and its data in addition to node_id. */
  readonly published: {
    readonly type: string
    readonly subject: string
    readonly data: Readonly<Record<string, unknown>>
  }
}

export const factContract = <
  F extends Fact,
  Command,
  Event extends Placed,
  State extends { readonly context: FactContext },
>(
  of: Kind<F, Command, Event, State>,
) => {
  aggregate(of)
  published(of)
  recorded(of)
}

const aggregate = <F extends Fact, Command, Event extends Placed, State>({
  kind: { to, record },
  machine,
  fact,
  event,
}: Kind<F, Command, Event, State>) => {
  const facts = given(to)
  const ended = (after: number, cursor = after + 1, of = epoch) =>
    event({ epoch: of, after, cursor, ...fact(cursor) })
  const recording = (from: number, cursors: ReadonlyArray<number>, of = epoch) =>
    record({ epoch: of, from, facts: cursors.map((cursor) => ({ cursor, fact: fact(cursor) })) })

  it("is recorded in order, each fact after the one before it", () =>
    facts(ended(0))
      .when(recording(1, [2, 3, 7]))
      .thenEvents(ended(1), ended(2), ended(3, 7)))
  it("begins where a spool begins, with any first cursor", () =>
    facts()
      .when(recording(0, [1_000_001]))
      .thenEvents(ended(0, 1_000_001)))
  it("is not recorded twice", () =>
    facts(ended(0))
      .when(recording(0, [1]))
      .thenRejected("FAILED_PRECONDITION"))
  it("is not recorded where one before it is missing", () =>
    facts(ended(0))
      .when(recording(2, [3]))
      .thenRejected("FAILED_PRECONDITION"))
  it("is not recorded backwards", () =>
    facts()
      .when(recording(0, [2, 1]))
      .thenRejected("FAILED_PRECONDITION"))
  it("is recorded of another spool from that one's beginning", () =>
    facts(ended(0), ended(1))
      .when(recording(0, [1], other))
      .thenEvents(ended(0, 1, other)))
  it("is not recorded of another spool where one before it is missing", () =>
    facts(ended(0), ended(1))
      .when(recording(2, [3], other))
      .thenRejected("FAILED_PRECONDITION"))
  it("goes on in the first spool after another one", () =>
    facts(ended(0), ended(0, 5, other))
      .when(recording(1, [2]))
      .thenEvents(ended(1)))
  it("has nothing to record without facts", () =>
    facts(ended(0)).when(recording(1, [])).thenEvents())

  it("folds each short history to the cursor of each spool, and is stored so", () => {
    const steps = [0, 1, 2, 3].flatMap((after) =>
      [epoch, other].flatMap((of) => [ended(after, after + 1, of), ended(after, after + 2, of)]),
    )
    let walked = 0
    // These events drive the state machine; its type is deferred.
    for (const { state, history } of histories(machine, steps as never, 4)) {
      const events = history as ReadonlyArray<Event>
      const naive = events.reduce(withFact, no_facts)
      assert.deepEqual(state.context, naive)
      const snapshot = to.save(events.reduce(to.evolve, to.initialState))
      assert.deepEqual(to.save(restored(to, snapshot)), snapshot)
      walked++
    }
    assert.isAbove(walked, 100)
  })
  it("is known to `audit verify`", () => assert.include(deciders, to))
}

const restored = <State>(
  to: Pick<Decider<unknown, unknown, State, unknown>, "restore">,
  snapshot: object,
) => {
  const state = to.restore(JSON.parse(JSON.stringify(snapshot)))
  assert(state !== undefined)
  return state
}

const strict = { onExcessProperty: "error" } as const

const published = <F extends Fact, Command, Event extends Placed, State>({
  kind: { to },
  fact,
  event,
  publications,
  types,
  published,
}: Kind<F, Command, Event, State>) => {
  it("is published once, as who asked, when it was asked, with what its type promises", () => {
    const events = [event({ epoch, after: 0, cursor: 1, ...fact(1) })]
    const commit: Commit = {
      v: 1,
      actor: "node:node-1",
      at: "2026-11-21T00:00:00.000Z",
      events,
      commands: ["c"],
      prev: "",
      snapshot: { machine: 1, value: "", context: {} },
    }
    const stream = `${to.name}.node-1`
    const tellings = publishedOf(publications, { position: 7, stream, hash: "", commit })
    assert.lengthOf(tellings, 1)
    const [service, kind] = to.name.split(".")
    const [first] = tellings
    assert.deepEqual([first?.service, first?.aggregate], [service, kind])
    const { at, actor, request_id, correlation_id } = fact(1)
    const cloud = Schema.decodeUnknownSync(
      CloudEvent,
      strict,
    )(JSON.parse(JSON.stringify(first?.event)))
    assert.deepEqual(cloud, {
      specversion: "1.0",
      id: "7.0",
      source: `/almanac/${service}/${kind}`,
      time: at,
      type: published.type,
      subject: published.subject,
      datacontenttype: "application/json",
      position: 7,
      actor,
      requestid: request_id,
      correlationid: correlation_id,
      data: { node_id: "node-1", ...published.data },
    })
    const type = types[published.type]
    assert(type !== undefined)
    Schema.decodeUnknownSync(type.data, strict)(cloud.data)
    assert.deepEqual([Object.keys(types), type.aggregate], [[published.type], kind])
  })
}

const recorded = <
  F extends Fact,
  Command,
  Event extends Placed,
  State extends { readonly context: FactContext },
>({
  kind,
  fact,
  published,
}: Kind<F, Command, Event, State>) => {
  const around = Layer.unwrap(
    Effect.map(temporaryFolder, (folder) =>
      SystemModel.layer(details).pipe(
        Layer.provide(sqlite(folder)),
        Layer.provideMerge(host),
        Layer.provideMerge(Layer.fresh(logMemory)),
      ),
    ),
  )
  it.live("is in the audit with its subject, time, actor and request, and none of the node's", () =>
    Effect.gen(function* () {
      const spool = yield* spoolMemory<F>()
      yield* spool.add(fact(1))
      yield* spool.add({ ...fact(2), request_id: "", correlation_id: "" })
      yield* Effect.forkScoped(spooler({ spool, kind, node_id: "node-1" }))
      yield* until(Effect.map(spool.scan(0, 1), ({ length }) => length === 0))
      const model = yield* SystemModel
      yield* model.catchUp
      const [service = "", aggregate = ""] = kind.to.name.split(".")
      const page = { order: "asc", limit: 10 } as const
      const { events } = yield* listEvents(model.reader, { service, aggregate }, page)
      const fields = events.map(({ id, subject, at, actor, request_id, correlation_id }) => {
        return { id, subject, at, actor, request_id, correlation_id }
      })
      const { at, actor, request_id, correlation_id } = fact(1)
      assert.deepEqual(fields[0], {
        id: "node-1",
        subject: published.subject,
        at,
        actor,
        request_id,
        correlation_id,
      })
      assert.deepEqual([fields[1]?.at, fields[1]?.actor], [fact(2).at, actor])
      assert.deepEqual([fields[1]?.request_id, fields[1]?.correlation_id], [undefined, undefined])
      assert.lengthOf(events, 2)
    }).pipe(Effect.scoped, Effect.provide(around)),
  )
}
