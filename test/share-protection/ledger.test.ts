import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Ledger } from "#actors/share-protection/ledger.ts"
import { type LedgerEvent, Released, Reserved } from "#events/share-protection/ledger.ts"
import { Counted, LedgerCommand, Release, Reserve } from "#schemas/share-protection/ledger.ts"
import { given } from "../world/given.ts"
import { assertStorable, everyState } from "../world/state-table.ts"

const limit = 2
const full = "svc.quota_exceeded"
const reserved = (what: Counted) => Reserved.make({ what, limit })
const released = (what: Counted, count: number) => Released.make({ what, count })
const reserve = (what: Counted) => Reserve.make({ what, limit })

const states = {
  "it counts nothing": [],
  "it counts one target": [reserved("targets")],
  "it counts as many targets as allowed": [reserved("targets"), reserved("targets")],
  "the last target is released": [reserved("targets"), released("targets", 1)],
} satisfies Record<string, ReadonlyArray<LedgerEvent>>

const ledger = given(Ledger)
const known = (...events: ReadonlyArray<LedgerEvent>) =>
  events.reduce(Ledger.evolve, Ledger.initialState).context

describe("a project's ledger", () => {
  everyState(Ledger, states, {
    Reserve: [
      {
        with: "of a target",
        command: reserve("targets"),
        in: { "it counts as many targets as allowed": full },
        otherwise: [reserved("targets")],
      },
      { with: "of a policy", command: reserve("policies"), otherwise: [reserved("policies")] },
      { with: "of a backup", command: reserve("backups"), otherwise: [reserved("backups")] },
      {
        with: "where the limit was lowered to none",
        command: Reserve.make({ what: "targets", limit: 0 }),
        otherwise: full,
      },
      {
        with: "where the limit was raised by one",
        command: Reserve.make({ what: "targets", limit: limit + 1 }),
        otherwise: [Reserved.make({ what: "targets", limit: limit + 1 })],
      },
    ],
    Release: [
      {
        with: "of one target",
        command: Release.make({ what: "targets", count: 1 }),
        in: {
          "it counts one target": [released("targets", 1)],
          "it counts as many targets as allowed": [released("targets", 1)],
        },
        otherwise: [],
      },
      {
        with: "of more targets than there are",
        command: Release.make({ what: "targets", count: 3 }),
        in: {
          "it counts one target": [released("targets", 1)],
          "it counts as many targets as allowed": [released("targets", 2)],
        },
        otherwise: [],
      },
      {
        with: "of what it does not count",
        command: Release.make({ what: "backups", count: 1 }),
        otherwise: [],
      },
    ],
  })

  it("names the limit that is reached", () => {
    const decided = Ledger.decide(Ledger.initialState, Reserve.make({ what: "backups", limit: 0 }))
    assert.include(JSON.stringify(decided), "The project has reached its limit of 0 backups.")
  })

  it("counts each of the four separately", () => {
    assert.deepEqual(
      known(
        reserved("targets"),
        reserved("policies"),
        reserved("policies"),
        reserved("backups"),
        reserved("backups"),
        released("backups", 2),
        reserved("templates"),
      ),
      { targets: 1, policies: 2, backups: 0, templates: 1 },
    )
  })

  it("frees exactly the released count", () => {
    const again = [...states["the last target is released"], reserved("targets")]
    ledger(...again)
      .when(reserve("targets"))
      .thenEvents(reserved("targets"))
    ledger(...again, reserved("targets"))
      .when(reserve("targets"))
      .thenRejected(full)
  })

  it("never releases more than it counts", () =>
    assert.throws(() => known(reserved("targets"), released("targets", 2)), /cannot happen/))

  it("fits in a snapshot", () =>
    assertStorable(
      Ledger,
      Counted.literals.flatMap((what) => [reserved(what), reserved(what)]),
    ))
})

describe("a command to a ledger", () => {
  const is = Schema.is(LedgerCommand)
  it("counts targets, policies or backups in integers", () => {
    for (const what of Counted.literals) assert.isTrue(is({ type: "Reserve", what, limit: 0 }))
    const release = { type: "Release", what: "targets" }
    assert.isTrue(is({ ...release, count: 1 }))
    for (const count of [0, -1, 1.5, "1", undefined]) {
      assert.isFalse(is({ ...release, count }), String(count))
    }
    assert.isFalse(is({ type: "Reserve", what: "shares", limit: 1 }))
    assert.isFalse(is({ type: "Reserve", what: "targets", limit: -1 }))
  })
})
