import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Attributes } from "#schemas/policy-check.ts"
import { allows, parseRule, type Rule } from "#schemas/policy-rule.ts"
import { rule, type World, worlds } from "./cases.ts"

const parsed = (rules: Readonly<Record<string, Rule>>) =>
  new Map(Object.entries(rules).map(([name, one]) => [name, parseRule(one)]))

const ask = (rule: Rule, { rules, target, creds }: World) =>
  allows(parsed({ ...rules, checked: rule }), "checked", target, creds)

/** One letter for each world, in the recorded format. */
const answers = (rule: Rule) => worlds.map((world) => (ask(rule, world) ? "T" : "F")).join("")

const alone = (rule: Rule, creds: Attributes = {}, target: Attributes = {}) =>
  ask(rule, { rules: {}, target, creds })

/** The results of oslo.policy 4.0.0; this implementation denies where it raised an exception. */
const recorded = readFileSync(join(import.meta.dirname, "recorded.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line): readonly [Rule, string] => JSON.parse(line))

describe("a policy rule", () => {
  it("means what oslo.policy says that it means", () => {
    expect(recorded.length).toBeGreaterThan(700)
    const wrong = recorded.filter(
      ([rule, expected]) => answers(rule) !== expected.replaceAll("E", "F"),
    )
    expect(wrong).toEqual([])
    const letters = recorded.map(([, expected]) => expected).join("")
    for (const letter of "TFE") expect(letters.split(letter).length).toBeGreaterThan(300)
  })

  it("without a definition is the default one, and without that always rejects", () => {
    expect(allows(parsed({ default: "@" }), "missing", {}, {})).toBe(true)
    expect(allows(parsed({ other: "@" }), "missing", {}, {})).toBe(false)
    expect(allows(new Map(), "default", {}, {})).toBe(false)
  })

  it("does not find what JavaScript puts on every object", () => {
    for (const word of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
      expect(alone(`${word}:x`)).toBe(false)
      expect(alone(`not ${word}.name:x and not ${word}.a:x`)).toBe(true)
      const put_in = `'undefined':%(${word})s or role:%(${word})s`
      expect(alone(put_in, { roles: ["undefined", "{}"] })).toBe(false)
      expect(allows(parsed({}), word, {}, {})).toBe(false)
    }
  })

  it("that leads to itself denies, also where it is denied", () => {
    const rules = parsed({
      a: "rule:b",
      b: "not rule:a",
      c: "not rule:c or rule:c",
      d: "rule:a or @",
    })
    for (const name of ["a", "b", "c", "d"]) expect(allows(rules, name, {}, {})).toBe(false)
  })

  it.each([
    ["https://example.org/allow", "queries a remote server"],
    ["http:x", "queries a remote server"],
    ["role:%s", "a % that is not part of %(name)s"],
    ["role:50%", "a % that is not part of %(name)s"],
    ["role:%(size)d", "a % that is not part of %(name)s"],
    ["1.5:x", "1.5 is neither an attribute name nor a literal"],
    ["user.:x", "user. is neither an attribute name nor a literal"],
  ])("with %s in it denies as a whole, and says why", (word, why) => {
    const target = { size: 7 }
    const creds = { user: { id: "x" }, roles: ["admin"] }
    for (const rule of [word, `not ${word}`, `not (${word} or @)`, `@ and not ${word}`, [word]]) {
      expect(alone(rule, creds, target)).toBe(false)
      expect(parseRule(rule).problem).toContain(why)
    }
  })

  it.each(["role:admin and", "a b", "(@", "@ )", "or", "not", "'text'", " ", "(".repeat(101)])(
    "written as %j is refused to everybody and says so",
    (rule) => {
      expect(alone(rule, { roles: ["admin"] })).toBe(false)
      expect(parseRule(rule).problem).toBe("its syntax is invalid")
    },
  )

  it("in order has no problem; one word that is no check is one", () => {
    expect(parseRule("not (role:a or project_id:%(project_id)s)")).not.toHaveProperty("problem")
    expect(parseRule("@ or nonsense").problem).toBe("nonsense is not a check (kind:match, @ or !)")
    expect(alone("@ or nonsense")).toBe(true)
  })

  it("may nest as deep as people write, and deeper than that denies", () => {
    const nested = (depth: number) => `${"(".repeat(depth)}@${")".repeat(depth)}`
    expect([alone(nested(100)), alone(nested(101))]).toEqual([true, false])
    expect(alone(`${"not ".repeat(100_000)}@`)).toBe(true)
  })
})

/** A rule that `not` inverts in every world; the laws of logic do not hold for others. */
const sayable = rule.filter((one) => {
  if (typeof one !== "string" || one.trim() === "" || parseRule(one).problem) return false
  return worlds.every((world) => ask(one, world) !== ask(`not (${one})`, world))
})

const inEach = (left: Rule, right: Rule) => expect(answers(left)).toBe(answers(right))

describe("the words and, or, not", () => {
  it("obey the laws of logic", () =>
    fc.assert(
      fc.property(sayable, sayable, sayable, (a, b, c) => {
        inEach(`not not (${a})`, a)
        inEach(`not ((${a}) and (${b}))`, `not (${a}) or not (${b})`)
        inEach(`not ((${a}) or (${b}))`, `not (${a}) and not (${b})`)
        inEach(`(${a}) and (${b}) or (${c})`, `((${a}) and (${b})) or (${c})`)
        inEach(`(${a}) or (${b}) and (${c})`, `(${a}) or ((${b}) and (${c}))`)
        inEach(`not (${a}) and (${b})`, `(not (${a})) and (${b})`)
        inEach(`(${a}) AND @`, a)
        inEach(`(${a}) oR !`, a)
        inEach(`(${a}) and !`, "!")
        inEach(`(${a}) or @`, "@")
      }),
      { numRuns: 100 },
    ))

  it("never grant access by unknown words", () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (text) => {
        const is_understood = parseRule(text).problem === undefined
        if (!is_understood && !/(^|\W)(or|not|and)(\W|$)|@/i.test(text)) {
          expect(answers(text)).toBe("FFFFFF")
        }
      }),
      { numRuns: 2000 },
    ))
})
