import { assert, describe, it } from "vitest"
import { isFullOf, rest_ms_max, restAfter, threadFull, threadRest } from "#adapters/thread-share.ts"

describe("the rest of detached work", () => {
  it("is none while the thread does nothing else", () => {
    assert.equal(restAfter(2, { active: 2, idle: 0 }), 0)
    assert.equal(restAfter(2, { active: 3, idle: 20 }), 0)
  })

  it("is nine times the work while others use the thread", () => {
    assert.equal(restAfter(2, { active: 12, idle: 8 }), 18)
    assert.equal(restAfter(3, { active: 30, idle: 0 }), 27)
  })

  it("is never longer than somebody waits who comes meanwhile", () => {
    assert.equal(restAfter(1000, { active: 5000, idle: 0 }), rest_ms_max)
  })

  it("is measured from one piece of work to the next", () => {
    const rests = threadRest()
    assert.isAtLeast(rests.after(0), 0)
    assert.isAtMost(rests.after(0), rest_ms_max)
    assert.isBelow(rests.gather_ms, 2000, "as long as a reader waits")
  })
})

describe("a thread without time left", () => {
  it("is one that had less than a fifth of it", () => {
    assert.isTrue(isFullOf({ active: 81, idle: 19 }))
    assert.isFalse(isFullOf({ active: 80, idle: 20 }))
    assert.isFalse(isFullOf({ active: 0, idle: 0 }))
  })

  it("is looked at from one question to the next", async () => {
    const isFull = threadFull()
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.isFalse(isFull())
    for (const until = performance.now() + 50; performance.now() < until; );
    await new Promise((resolve) => setImmediate(resolve))
    assert.isTrue(isFull())
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.isFalse(isFull())
  })
})
