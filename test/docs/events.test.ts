/** The contract with subscribers: the documents match the published types, which only grow. */
import { existsSync, readFileSync } from "node:fs"
import { assert, describe, expect, it } from "vitest"
import {
  bare,
  broken,
  formatted,
  type Promised,
  promisedOf,
  type Shape,
  services,
  typesSection,
} from "./events-page.ts"

const page = "docs/events.md"
const golden = "docs/events.schema.json"

const begin = "<!-- From here on made from schemas/*/published.ts. -->"
const end = "<!-- Up to here. -->"

const all = await services()
const now = promisedOf(all)
const data: Shape = {
  type: "object",
  properties: { a: { type: "string", allOf: [{ description: "A." }] }, b: { type: "integer" } },
  required: ["a"],
}
const one = (shape: Shape = data): Record<string, Promised> => ({
  "events.s.a.t": { source: "/almanac/s/a", data: shape },
})

describe("docs/events.md", () => {
  it("lists each type with its fields, as the schemas have them", async () => {
    const text = readFileSync(page, "utf8")
    const [before, rest = ""] = text.split(begin)
    const after = rest.split(end)[1]
    assert.isDefined(after, `${page} has lost its two marks`)
    const made = [before, begin, "\n\n", typesSection(all), end, after].join("")
    await expect(made).toMatchFileSnapshot(`../../${page}`)
  })

  it("describes every field, and names each type in snake case", () => {
    for (const [, types] of all) {
      for (const [type, { when }] of Object.entries(types)) {
        assert.match(type, /^[a-z]+(_[a-z]+)+$/)
        assert.match(when, /^[A-Z].*\.$/)
      }
    }
    assert.notMatch(typesSection(all), /: $/m)
  })
})

describe("docs/events.schema.json", () => {
  it("is only ever added to, and has all there is", async () => {
    assert.isTrue(existsSync(golden))
    // First check for breaking changes, which must never be written, even with the update flag.
    expect(broken(JSON.parse(readFileSync(golden, "utf8")), now)).toEqual([])
    await expect(formatted(now)).toMatchFileSnapshot(`../../${golden}`)
  })

  for (const [what, after] of [
    ["a type that is gone", {}],
    ["a field that is gone", one({ ...data, properties: { b: { type: "integer" } } })],
    [
      "a field of another type",
      one({ ...data, properties: { ...data.properties, b: { type: "string" } } }),
    ],
    ["a field that may be absent now", one({ ...data, required: [] })],
    ["another source", { "events.s.a.t": { source: "/almanac/s/b", data } }],
  ] as const) {
    it(`would not take ${what}`, () => {
      assert.lengthOf(broken(one(), after), 1)
    })
  }

  it("takes a value that is added to a list of values, and would not take one that is gone", () => {
    const listed = (...values: ReadonlyArray<string>) =>
      one({ ...data, properties: { a: { type: "string", enum: values } } })
    assert.deepEqual(broken(listed("x"), listed("x", "y")), [])
    assert.lengthOf(broken(listed("x", "y"), listed("x")), 1)
    assert.lengthOf(broken(listed("x"), one()), 1)
  })

  it("allows a pattern to be added, and rejects a changed one", () => {
    const text = (pattern: string) =>
      one({ ...data, properties: { ...data.properties, a: { type: "string", pattern } } })
    assert.deepEqual(broken(one(), text("^a$")), [])
    assert.lengthOf(broken(text("^a$"), text("^b$")), 1)
    assert.lengthOf(broken(text("^a$"), one()), 1)
  })

  it("takes a type or a field that is added, and a better description", () => {
    const more = { ...data, properties: { ...data.properties, c: { type: "string" } } }
    assert.deepEqual(
      broken(one(), { ...one(more), "events.s.a.u": { source: "/almanac/s/a", data } }),
      [],
    )
    const words = { type: "string", allOf: [{ description: "Another." }] }
    assert.deepEqual(
      broken(one(), one({ ...data, properties: { ...data.properties, a: words } })),
      [],
    )
    assert.deepEqual(bare(words), { type: "string" })
  })
})
