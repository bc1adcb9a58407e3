/** The text for any thrown value. */
import { Data } from "effect"
import { describe, expect, it } from "vitest"
import { LogUnavailable } from "#events/log.ts"
import { causeText } from "#schemas/cause-text.ts"

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

describe("the text of a cause", () => {
  it("is an error's message alone, for each class", () => {
    expect(causeText(new Error("the disk is full"))).toBe("the disk is full")
    expect(causeText(new RangeError("too long"))).toBe("too long")
    expect(causeText(new Broken({ message: "no answer" }))).toBe("no answer")
    expect(causeText(new Error("one\ntwo"))).toBe("one\ntwo")
  })

  it("is an error's detail where it has no message", () => {
    expect(causeText(new LogUnavailable({ detail: "no answer" }))).toBe("no answer")
  })

  it("is empty where an error says nothing", () => {
    expect(causeText(new Error())).toBe("")
  })

  it("is any other thrown value, as text", () => {
    expect([undefined, null, 7, "late", Symbol("s"), { message: "m" }].map(causeText)).toEqual([
      "undefined",
      "null",
      "7",
      "late",
      "Symbol(s)",
      "[object Object]",
    ])
  })
})
