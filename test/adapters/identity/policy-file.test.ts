import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Effect, Logger, Result, Schedule } from "effect"
import { parseRules, policyRules } from "#adapters/identity/policy-file.ts"
import { allows } from "#schemas/policy-rule.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-policy-"))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
const pathOf = (text: string) => {
  const path = join(folder, `${files++}.yaml`)
  writeFileSync(path, text)
  return path
}

const read = (text: string) =>
  Result.match(parseRules(text), { onSuccess: (rules) => rules, onFailure: (problem) => problem })

describe("the text of a policy file", () => {
  it("is what oslo.policy's own samples look like", () => {
    const sample = [
      "\uFEFF# List all targets",
      "# GET /v1/targets",
      '#"share-protection:targets:list": "role:member"',
      "---",
      "",
      '"admin_required": "role:admin or is_admin:1"   # as before',
      "\"owner\" : 'user_id:%(user_id)s'",
      "share-protection:usage:get: \"not 'a':%(b)s\"",
      "'it''s': '''x'':%(y)s'\r",
      '"open": ""',
      String.raw`"escaped": "\"x\":%(y)s \u0040"`,
    ]
    expect(read(sample.join("\n"))).toEqual({
      admin_required: "role:admin or is_admin:1",
      owner: "user_id:%(user_id)s",
      "share-protection:usage:get": "not 'a':%(b)s",
      "it's": "'x':%(y)s",
      open: "",
      escaped: '"x":%(y)s @',
    })
  })

  it("may be JSON, with rules of the older form too", () => {
    const rules = { a: "role:admin", b: [["role:x", "rule:a"], "@"], c: [] }
    expect(read(`\n ${JSON.stringify(rules)}`)).toEqual(rules)
    expect(read("{}")).toEqual({})
  })

  it("may begin with a byte order mark", () => {
    expect(read('\uFEFF"a": "@"')).toEqual({ a: "@" })
    expect(read('\uFEFF{"a": "@"}')).toEqual({ a: "@" })
  })

  it("may hold nothing at all", () => {
    for (const text of ["", "\n\n", "# nothing\n", "---\n"]) expect(read(text)).toEqual({})
  })

  it.each([
    ['"a": role:admin', 1],
    ['"a":', 1],
    ['"a": "@"\n"b": !', 2],
    ['"a": "@" "b": "!"', 1],
    ['"a":"@"', 1],
    ['  "a": "@"', 1],
    ["a:\n  - role:x", 1],
    ['"a": "x\n  y"', 1],
    ['"a": >\n  role:x', 1],
    [String.raw`"a": "\x41"`, 1],
    ["&x 'a': 'b'", 1],
    ["[]", 1],
  ])("is refused with its line when it is more of YAML: %j", (text, line) =>
    expect(read(text)).toBe(`, line ${line}: not "name": "rule"`),
  )

  it("names each rule once", () =>
    expect(read('"a": "@"\n\n"a": "!"')).toBe(", line 3: a is defined twice"))

  it.each(["{", '{"a": 1}', '{"a": null}', '{"a": [[1]]}', '{"a": {"b": "@"}}'])(
    "that begins as JSON must be rules in JSON: %j",
    (text) => expect(read(text)).toBe(" is not a JSON object of rules"),
  )
})

describe("the rules that hold", () => {
  const defaults = { base: "role:admin", use: "rule:base" }
  const messages: Array<string> = []
  const logged = Logger.layer([
    Logger.make(({ message }) => {
      messages.push(String(message))
    }),
  ])
  const admin = { roles: ["admin"] }
  const reader = { roles: ["reader"] }
  const until = (is_so: () => boolean) =>
    Effect.sync(is_so).pipe(
      Effect.repeat({ until: (so) => so, schedule: Schedule.spaced(20), times: 500 }),
      Effect.tap((so) => Effect.sync(() => assert.isTrue(so))),
    )

  it.effect("are the default ones without a file", () =>
    Effect.gen(function* () {
      const rules = yield* policyRules("", defaults)
      expect(allows(rules(), "use", {}, admin)).toBe(true)
      expect(allows(rules(), "use", {}, reader)).toBe(false)
    }),
  )

  it.effect("are the file's where it has them, under default ones as well", () =>
    Effect.gen(function* () {
      const rules = yield* policyRules(pathOf('"base": "role:reader"\n"new": "@"'), defaults)
      expect(allows(rules(), "use", {}, admin)).toBe(false)
      expect(allows(rules(), "use", {}, reader)).toBe(true)
      expect(allows(rules(), "new", {}, {})).toBe(true)
    }),
  )

  it.live("follow the file, but into no mistake", () =>
    Effect.gen(function* () {
      const path = pathOf('"use": "role:reader"')
      const rules = yield* policyRules(path, defaults)
      const may = () => allows(rules(), "use", {}, reader)
      const beside = pathOf('"use": "@"')
      const others = yield* policyRules(beside, defaults)
      assert.isTrue(may())
      writeFileSync(path, '"use": "!"')
      yield* until(() => !may())
      writeFileSync(path, '"use": "@"\nmistake')
      yield* until(() => messages.some((text) => text.includes("line 2")))
      assert.isFalse(may())
      // Waits for one poll of the file, and then for another.
      for (const rule of ["!", "@ or @"]) {
        writeFileSync(beside, `"use": "${rule}"`)
        yield* until(() => allows(others(), "use", {}, {}) === (rule !== "!"))
      }
      renameSync(path, `${path}.away`)
      yield* until(() => messages.some((text) => text.includes("ENOENT")))
      assert.isFalse(may())
      writeFileSync(`${path}.new`, '"use": "role:reader "')
      renameSync(`${path}.new`, path)
      yield* until(may)
      const mistakes = messages.filter((text) => text.includes("line 2"))
      expect(mistakes).toEqual([
        `policy.file: ${path}, line 2: not "name": "rule". ` + "The previous rules still apply.",
      ])
    }).pipe(Effect.provide(logged)),
  )

  it.effect("are said to deny where they cannot be understood", () =>
    Effect.gen(function* () {
      messages.length = 0
      const rules = yield* policyRules(pathOf('"use": "role:admin or"\n"a": "http:x"'), defaults)
      expect(allows(rules(), "use", {}, admin)).toBe(false)
      expect(messages).toEqual([
        "policy.file, rule use: its syntax is invalid; the invalid part denies access.",
        "policy.file, rule a: http:x queries a remote server, which is not supported; " +
          "the invalid part denies access.",
      ])
    }).pipe(Effect.provide(logged)),
  )

  it.effect("stop the start when the file is missing, too large or not one of rules", () =>
    Effect.gen(function* () {
      const refusal = (path: string) =>
        Effect.map(Effect.flip(policyRules(path, defaults)), ({ message }) => message)
      expect(yield* refusal("/none")).toBe("policy.file: cannot read /none: ENOENT")
      const large = pathOf("#".repeat(2 ** 20 + 1))
      expect(yield* refusal(large)).toBe(`policy.file: cannot read ${large}: TOO_LARGE`)
      const wrong = pathOf("{")
      expect(yield* refusal(wrong)).toBe(`policy.file: ${wrong} is not a JSON object of rules`)
    }),
  )
})
