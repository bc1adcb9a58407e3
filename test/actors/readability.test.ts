/** Rejects commits that no release can have written: decision 0189. */
import { assert, describe, it } from "@effect/vitest"
import { judgeOf } from "#actors/readability.ts"
import type { Commit } from "#events/log.ts"
import { deciders, judge } from "#server/aggregate-kinds.ts"
import { readLog } from "../upgrade/fixture.ts"

const lines = readLog()

/** One commit of each kind from the previous release, with the most fields of its kind. */
const examples = new Map<string, { readonly stream: string; readonly commit: Commit }>()
for (const { stream, commit } of lines) {
  const name = stream.slice(0, stream.lastIndexOf("."))
  const known = examples.get(name)
  const isRicher = JSON.stringify(commit).length > JSON.stringify(known?.commit ?? "").length
  if (known === undefined || isRicher) examples.set(name, { stream, commit })
}

const versionOf = (name: string) => {
  const decider = deciders.find((one) => one.name === name)
  assert.isDefined(decider)
  return decider === undefined ? 0 : decider.save(decider.initialState).machine
}

describe("the judge of commits", () => {
  it("accepts all commits of the previous release", () => {
    for (const { stream, position, commit } of lines) {
      assert.isUndefined(judge(stream, commit), `${stream} at ${position}`)
    }
    assert.isAbove(examples.size, 15)
  })

  it("accepts kinds that this program does not read", () => {
    const [first] = lines
    assert.isUndefined(first && judge("weather.station.one", first.commit))
    assert.isUndefined(first && judgeOf([])(first.stream, first.commit))
  })

  for (const [name, { stream, commit }] of examples) {
    const with_type = (type: string): Commit => ({ ...commit, events: [{ type }] })
    const with_snapshot = (change: object): Commit => ({
      ...commit,
      snapshot: { ...commit.snapshot, machine: versionOf(name), ...change },
    })

    it(`refuses a ${name} with an event of no type`, () => {
      assert.match(judge(stream, with_type("Sneezed")) ?? "", /^its event Sneezed has a type/)
    })
    it(`refuses a ${name} with a snapshot of no state`, () => {
      assert.isDefined(judge(stream, with_snapshot({ value: "nowhere" })))
      assert.isDefined(judge(stream, with_snapshot({ value: { no: "where" } })))
    })
    it(`accepts a ${name} of a newer release, with any content`, () => {
      const newer = with_snapshot({ machine: versionOf(name) + 1, value: "nowhere" })
      assert.isUndefined(judge(stream, { ...newer, events: [{ type: "Sneezed" }] }))
    })
    const fields = Object.keys(commit.events[0] ?? {}).filter((field) => field !== "type")
    it.skipIf(fields.length === 0)(`refuses a ${name} with an event of another shape`, () => {
      const [{ type } = { type: "" }] = commit.events
      assert.match(judge(stream, with_type(type)) ?? "", /^its event \w+ does not match its schema/)
    })
  }

  it("requires every field of a context", () => {
    const needing = deciders.flatMap((decider) => {
      const { context } = decider.save(decider.initialState)
      const [field] = Object.keys(context ?? {})
      const known = examples.get(decider.name)
      return field === undefined || known === undefined ? [] : [{ decider, field, ...known }]
    })
    assert.isAbove(needing.length, 10)
    for (const { decider, field, stream, commit } of needing) {
      const { machine } = decider.save(decider.initialState)
      const some = Object.entries(commit.snapshot.context ?? {})
      const context = Object.fromEntries(some.filter(([name]) => name !== field))
      const without = { ...commit, snapshot: { ...commit.snapshot, machine, context } }
      assert.equal(judge(stream, without), `its snapshot has no ${field}`)
    }
  })
})
