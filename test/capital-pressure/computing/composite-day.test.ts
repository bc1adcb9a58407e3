import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Composite } from "#actors/capital-pressure/composite.ts"
import {
  CompositeComputed,
  type CompositeEvent,
  CompositeWithdrawn,
} from "#events/capital-pressure/composite.ts"
import { commit_bytes_max } from "#events/log.ts"
import { type CompositeDay, RecordComposite } from "#schemas/capital-pressure/composite.ts"
import { dayOf, isBusinessDay } from "#schemas/capital-pressure/day.ts"
import { bytesOf, coded, decided, leap_year } from "../../world/capital-pressure/coded.ts"
import { assertStorable, everyState } from "../../world/state-table.ts"

const first: CompositeDay = { ts: "2026-01-02", z: 0.25, tiers: [1, null, -0.5, null] }
const second: CompositeDay = { ts: "2026-01-05", z: -0.000_001, tiers: [null, null, null, 0] }
const moved: CompositeDay = { ...first, tiers: [1, null, -0.5, 0] }

const computed = (day: CompositeDay, ...more: ReadonlyArray<CompositeDay>) =>
  CompositeComputed.make({ days: [day, ...more] })

const states = {
  absent: [],
  computed: [computed(first)],
  "computed again": [computed(first), computed(moved)],
  withdrawn: [computed(first), CompositeWithdrawn.make({ days: [first.ts] })],
} satisfies Record<string, ReadonlyArray<CompositeEvent>>

const record = (...days: ReadonlyArray<CompositeDay>) => RecordComposite.make({ days })

describe("the composite of a year", () => {
  it("never records what is no number", () => {
    for (const z of [Number.NaN, Number.POSITIVE_INFINITY]) {
      // A sender in this process can do this, because its commands are not decoded.
      const command = { type: "RecordComposite" as const, days: [{ ...first, z }] }
      assert.throws(() => decided(Composite, command), /a composite of/)
    }
  })

  everyState(coded(Composite), states, {
    RecordComposite: [
      {
        command: record(first, second),
        in: { computed: [computed(second)] },
        otherwise: [computed(first, second)],
      },
      {
        with: "of a tier that has data now",
        command: record(moved),
        in: { "computed again": [] },
        otherwise: [computed(moved)],
      },
      {
        with: "of a day that has none any more",
        command: RecordComposite.make({ days: [second], withdrawn: [first.ts, first.ts] }),
        in: { absent: [computed(second)], withdrawn: [computed(second)] },
        otherwise: [computed(second), CompositeWithdrawn.make({ days: [first.ts] })],
      },
      {
        with: "of a day that both has one and has none",
        command: RecordComposite.make({ days: [first], withdrawn: [first.ts] }),
        in: { computed: [] },
        otherwise: [computed(first)],
      },
      {
        with: "of none any more in another year",
        command: RecordComposite.make({ days: [], withdrawn: ["2025-12-31"] }),
        in: { absent: [] },
        otherwise: "WrongYear",
      },
      {
        with: "of another year",
        command: record({ ...first, ts: "2025-12-31" }),
        in: { absent: [computed({ ...first, ts: "2025-12-31" })] },
        otherwise: "WrongYear",
      },
      {
        with: "of two years",
        command: record(first, { ...first, ts: "2027-01-01" }),
        otherwise: "WrongYear",
      },
    ],
  })

  it("is of six decimals: what differs beyond them is no news, and there is no minus zero", () => {
    const result: CompositeDay = { ...first, z: 0.123_456_4, tiers: [-0.000_000_1, null, 2, 1e-9] }
    const [event] = decided(Composite, record(result))
    assert.deepEqual(event, computed({ ts: first.ts, z: 0.123_456, tiers: [0, null, 2, 0] }))
    const is_computed = event?.type === "CompositeComputed"
    assert.isTrue(is_computed && Object.is(event.days[0].tiers[0], 0))
    const state = Composite.after(Composite.initialState, event === undefined ? [] : [event])
    const same = record({ ...result, z: 0.123_456_1 })
    assert.deepEqual(Composite.decide(state, same), Result.succeed([]))
    const other = record({ ...result, z: 0.123_457 })
    assert.lengthOf(Result.getOrThrow(Composite.decide(state, other)), 1)
  })

  it("distinguishes each field from the next", () => {
    const state = Composite.evolve(Composite.initialState, computed(first))
    for (const other of [
      { ...first, z: -0.25 },
      { ...first, tiers: [null, 1, -0.5, null] as const },
      { ...first, tiers: [1, null, null, -0.5] as const },
      { ...first, tiers: [1, 0, -0.5, null] as const },
    ]) {
      assert.lengthOf(Result.getOrThrow(Composite.decide(state, record(other))), 1)
    }
  })

  it("keeps a year of business days in a snapshot and in a commit", () => {
    const days = leap_year
      .filter((ts) => isBusinessDay(dayOf(ts)))
      .map((ts, i) => {
        const z = -33.123_457 - i
        return { ts, z, tiers: [z, z + 1, z + 2, z + 3] } satisfies CompositeDay
      })
    assert.lengthOf(days, 262)
    const events = decided(Composite, record(...days))
    assert.lengthOf(events, 1)
    assert.lengthOf(events[0]?.days ?? [], 262)
    assert.isBelow(bytesOf(events), commit_bytes_max / 2)
    assertStorable(Composite, events)
    const again = Composite.decide(Composite.after(Composite.initialState, events), record(...days))
    assert.deepEqual(again, Result.succeed([]))
  })
})
