import { assert, describe, it } from "@effect/vitest"
import {
  type Backlog,
  blamed_max,
  type Item,
  makeBacklog,
  open_max,
  parallel_max,
} from "#actors/system/webhooks/backlog.ts"
import { resumed } from "#actors/system/webhooks/delivery.ts"
import type { Outcome } from "#actors/system/webhooks/sender.ts"

const hour_ms = 3_600_000
const empty = resumed({ replay: 0, after: 0, revision: 1 }, undefined)
const refused: Outcome = { is_delivered: false, status: 400, detail: "It answered 400." }

const filled = (...keys: ReadonlyArray<string>) => {
  const backlog = makeBacklog(empty)
  for (const [n, key] of keys.entries()) backlog.take({ sequence: n + 1, key })
  backlog.readTo(keys.length)
  return backlog
}

const begun = (backlog: Backlog, now_ms = 0) =>
  backlog.begin(now_ms).items.map(({ sequence }) => sequence)

/** Starts an item and lets it fail. */
const fail = (backlog: Backlog, item: Item, now_ms: number, outcome = refused) =>
  backlog.failed(item, outcome, now_ms, 1)

describe("a webhook's backlog", () => {
  it("begins the first event of each subject, and the next once that one is done", () => {
    const backlog = filled("a", "a", "b", "a")
    const { items } = backlog.begin(0)
    assert.deepEqual(
      items.map(({ sequence }) => sequence),
      [1, 3],
    )
    assert.deepEqual(begun(backlog), [])
    for (const item of items) backlog.succeeded(item, 1)
    assert.deepEqual(begun(backlog, 1), [2])
  })

  it(`has ${parallel_max} tries under way at most`, () => {
    const backlog = filled(...Array.from({ length: 20 }, (_, n) => `k${n}`))
    const { items } = backlog.begin(0)
    assert.lengthOf(items, parallel_max)
    const [first] = items
    if (first !== undefined) backlog.succeeded(first, 0)
    assert.deepEqual(begun(backlog), [parallel_max + 1])
  })

  it("lets a failed one wait longer each time, and the others of its subject with it", () => {
    const backlog = filled("a", "a", "b")
    let now = 0
    const waits: Array<number> = []
    for (let tries = 0; tries < 14; tries++) {
      const [item] = backlog.begin(now).items.filter(({ key }) => key === "a")
      assert.equal(item?.sequence, 1)
      if (item === undefined) return
      fail(backlog, item, now)
      const { next } = backlog.begin(now)
      waits.push((next - now) / 1000)
      assert.deepEqual(begun(backlog, next - 1), [])
      now = next
    }
    assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 40])
    assert.equal(waits.at(-1), hour_ms / 1000)
  })

  it("holds everything for as long as a Retry-After asks, an hour at most", () => {
    const backlog = filled("a", "b", "b")
    const [a, b] = backlog.begin(0).items
    if (a === undefined || b === undefined) assert.fail("two begin")
    fail(backlog, a, 0, { ...refused, retry_after_ms: 90_000 })
    backlog.succeeded(b, 0)
    assert.deepEqual(begun(backlog, 89_999), [])
    assert.deepEqual(begun(backlog, 90_000), [1, 3])
  })

  it("gives up what fails while others are taken, and never what fails with all others", () => {
    for (const is_taken of [true, false]) {
      const backlog = filled("a", "a")
      let now = 0
      let verdict = "again"
      for (let tries = 0; tries < 40 && verdict === "again"; tries++) {
        const [item] = backlog.begin(now).items
        if (item === undefined) assert.fail("it begins")
        verdict = fail(backlog, item, now)
        if (is_taken) {
          backlog.take({ sequence: 100 + tries, key: `other ${tries}` })
          const [other] = backlog.begin(now + 1).items
          if (other !== undefined) backlog.succeeded(other, now + 1)
        }
        if (verdict === "give_up") {
          assert.equal(item.attempts, blamed_max + 1)
          backlog.settle(item)
        }
        now += 2 * hour_ms
      }
      assert.equal(verdict, is_taken ? "give_up" : "again")
      // The items behind it get their turn.
      if (is_taken) assert.deepEqual(begun(backlog, now), [2])
    }
  })

  it("asks a receiver that is down once a minute, with what was tried least", () => {
    const backlog = filled("a", "b", "c", "d", "e", "f")
    for (const item of backlog.begin(0).items) fail(backlog, item, 0)
    backlog.take({ sequence: 7, key: "g" })
    let now = 0
    const tried: Array<number> = []
    for (let tries = 0; tries < 12; tries++) {
      const { items, next } = backlog.begin(now)
      assert.isAtMost(items.length, 1)
      for (const item of items) {
        tried.push(item.sequence)
        assert.deepEqual(begun(backlog, now + hour_ms), [])
        fail(backlog, item, now)
      }
      if (items.length === 0) {
        assert.isAtMost(next - now, 60_000)
        now = next
      }
    }
    assert.equal(tried[0], 7)
    const [last] = backlog.begin(now + 60_000).items
    if (last === undefined) assert.fail("one is tried")
    backlog.succeeded(last, now + 60_000)
    // The receiver is back, so no item waits for the rest of the hour.
    assert.lengthOf(begun(backlog, now + 60_001), 6)
  })

  it("learns from a delivered dead letter that the receiver is back", () => {
    const backlog = filled("a", "b", "c", "d", "e")
    for (const item of backlog.begin(0).items) fail(backlog, item, 0)
    assert.equal(backlog.failingSince(), 0)
    backlog.take({ sequence: 9, key: "letter 9", is_redelivery: true })
    const [letter] = backlog.begin(60_000).items
    if (letter === undefined) assert.fail("it begins")
    assert.equal(letter.sequence, 9)
    backlog.succeeded(letter, 60_001)
    assert.isNull(backlog.failingSince())
    // It leaves the backlog once the log has it, and is not retried until then.
    assert.deepEqual(begun(backlog, 60_002), [1, 2, 3, 4, 5])
    backlog.postpone(letter, 70_000)
    assert.deepEqual(begun(backlog, 69_999), [])
    assert.deepEqual(begun(backlog, 70_000), [9])
    backlog.settle(letter)
  })

  it("makes room by giving up the subject that is stuck, when it has all of it", () => {
    const backlog = filled(...Array.from({ length: open_max }, () => "stuck"))
    assert.isFalse(backlog.hasRoom())
    assert.deepEqual(backlog.surplus(), [])
    let now = 0
    for (let tries = 0; tries < 3; tries++) {
      const [item] = backlog.begin(now).items
      if (item !== undefined) fail(backlog, item, now)
      now += hour_ms
    }
    assert.lengthOf(backlog.surplus(), open_max)
    for (const item of backlog.surplus()) backlog.settle(item)
    assert.isTrue(backlog.hasRoom())
    assert.deepEqual(backlog.cursor().open, [])
  })

  it("keeps in its cursor how often an event failed while others were delivered", () => {
    const backlog = filled("a")
    const [item] = backlog.begin(0).items
    if (item === undefined) assert.fail("it begins")
    const blamed = () => backlog.cursor().open.map((open) => open.blamed)
    fail(backlog, item, 0)
    assert.deepEqual(blamed(), [undefined])
    backlog.take({ sequence: 2, key: "b" })
    const [other] = backlog.begin(1).items
    if (other === undefined) assert.fail("the other begins")
    backlog.succeeded(other, 1)
    backlog.begin(hour_ms)
    fail(backlog, item, hour_ms)
    assert.deepEqual(blamed(), [1])
  })

  it("is the same after its cursor was kept, as far as what is open goes", () => {
    const backlog = filled("a", "a", "b", "c")
    const [a, b] = backlog.begin(0).items
    if (a === undefined || b === undefined) assert.fail("two begin")
    fail(backlog, a, 1000)
    backlog.succeeded(b, 1000)
    const cursor = backlog.cursor()
    assert.deepEqual(
      cursor.open.map(({ sequence }) => sequence),
      [1, 2, 4],
    )
    const again = makeBacklog(JSON.parse(JSON.stringify(cursor)))
    for (const open of cursor.open) again.take({ ...open, key: open.sequence < 3 ? "a" : "c" })
    assert.deepEqual(again.cursor(), cursor)
    assert.deepEqual(begun(again, 1000), [4])
  })
})

describe("where a webhook goes on", () => {
  const kept = { ...empty, read: 50, open: [10, 40].map((sequence) => ({ sequence, attempts: 1 })) }

  it("is where it stopped, or its first event", () => {
    assert.deepEqual(resumed({ replay: 0, after: 9, revision: 1 }, kept), kept)
    assert.deepEqual(resumed({ replay: 0, after: 9, revision: 1 }, undefined), {
      ...empty,
      read: 9,
    })
  })

  it("is with all its days before it, where its owner changed or enabled it since", () => {
    const failing = { ...kept, failing_since_ms: 5 }
    const same = resumed({ replay: 0, after: 9, revision: 1 }, failing)
    assert.equal(same.failing_since_ms, 5)
    const enabled = resumed({ replay: 0, after: 9, revision: 3 }, failing)
    assert.deepEqual(enabled, { ...kept, revision: 3, failing_since_ms: null })
  })

  it("is where a replay begins, and what is open before that stays open", () => {
    const { read, open, replay } = resumed({ replay: 1, after: 20, revision: 1 }, kept)
    assert.deepEqual([read, open.map(({ sequence }) => sequence), replay], [20, [10], 1])
  })

  it("is never later than it was: a replay skips nothing", () => {
    assert.deepEqual(resumed({ replay: 1, after: 70, revision: 1 }, kept), { ...kept, replay: 1 })
  })
})
