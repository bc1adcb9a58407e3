import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Agenda, type Entry } from "#actors/agenda.ts"

/** A reference implementation: a list that is sorted on each call. */
const naive = () => {
  const owned = new Map<string, ReadonlyArray<Entry<string>>>()
  return {
    set: (owner: string, entries: ReadonlyArray<Entry<string>>) => void owned.set(owner, entries),
    due: (now: number) => {
      const all = [...owned.values()].flat()
      const later = all.filter(({ at }) => at > now).map(({ at }) => at)
      return {
        now: all.filter(({ at }) => at <= now).map(({ item }) => item),
        ...(later.length ? { next: Math.min(...later) } : {}),
      }
    },
  }
}

/** A small generator of numbers from a seed (mulberry32): in [0, 1). */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

/** Bytes of reachable memory. */
const liveBytes = () => {
  setFlagsFromString("--expose-gc")
  const collect: () => void = runInNewContext("gc")
  collect()
  return process.memoryUsage().heapUsed
}

describe("an agenda", () => {
  it("returns the same due items and next time as a plain list", () => {
    const seed = Date.now() % 2 ** 31
    const roll = random(seed)
    const pick = (n: number) => Math.floor(roll() * n)
    const [agenda, oracle] = [Agenda.make<string>(), naive()]
    for (let step = 0, now = 0; step < 3000; step++) {
      const owner = `owner-${pick(40)}`
      const entries = Array.from({ length: pick(4) }, (_, i) => ({
        at: now + pick(100) - 10,
        item: `${step}-${i}`,
      }))
      agenda.set(owner, entries)
      oracle.set(owner, entries)
      now += pick(6)
      const [got, want] = [agenda.due(now), oracle.due(now)]
      const sorted = (due: typeof got) => ({ ...due, now: [...due.now].sort() })
      assert.deepEqual(sorted(got), sorted(want), `seed ${seed}, step ${step}`)
    }
  })

  it("returns the earliest item first", () => {
    const agenda = Agenda.make<number>()
    for (const at of [5, 3, 9, 1, 7]) agenda.set(`o${at}`, [{ at, item: at }])
    assert.deepEqual(agenda.due(8), { now: [1, 3, 5, 7], next: 9 })
  })

  it("holds at most as many stale entries as live ones", () => {
    const agenda = Agenda.make<string>()
    const before = liveBytes()
    for (let i = 0; i < 20_000; i++) {
      agenda.set(`o${i % 50}`, [{ at: 1e15 + i, item: `${i}`.padEnd(2000, "x") }])
    }
    assert.isBelow(liveBytes() - before, 4_000_000)
    assert.equal(agenda.due(0).next, 1e15 + 19_950)
  })
})
