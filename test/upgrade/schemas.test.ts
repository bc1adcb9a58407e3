/**
 * The upgrade rule for schemas: events in the previous release's log are still valid, and its
 * guarantees to subscribers still hold. `node test/upgrade/renew.ts` renews the data for both
 * comparisons at a release.
 */
import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { isPartOf, type Part } from "#events/log.ts"
import { blueprint as blob_storage } from "#projections/blob-storage/blueprint.ts"
import { blueprint as capital_pressure } from "#projections/capital-pressure/blueprint.ts"
import { blueprint as share_protection } from "#projections/share-protection/blueprint.ts"
import { blueprint as system } from "#projections/system/blueprint.ts"
import { blueprint as webhooks } from "#projections/system/webhook-model.ts"
import { typesOf } from "#schemas/message.ts"
import { deciders } from "#server/aggregate-kinds.ts"
import { details } from "#server/audit-details.ts"
import { broken, promisedOf, services } from "../docs/events-page.ts"
import { type Kind, readSchemas } from "./fixture.ts"
import { type Form, faults, typesIn } from "./wider.ts"

const { events, published, read_models } = readSchemas()

const now = new Map(
  deciders.map(({ name, event, save, initialState }): readonly [string, Kind] => {
    const { schema, definitions } = Schema.toJsonSchemaDocument(event)
    const { machine } = save(initialState)
    // The library's own types cover any JSON Schema.
    return [
      name,
      { schema: schema as Form, definitions: definitions as Kind["definitions"], machine },
    ]
  }),
)

/**
 * Kinds with events that the previous release cannot decode, although their machine's version is
 * unchanged: it would take them for commits that no release wrote (decision 0189).
 */
const unraised = (before: Readonly<Record<string, Kind>>, after: ReadonlyMap<string, Kind>) =>
  Object.entries(before).flatMap(([name, { schema, machine }]) => {
    const kind = after.get(name)
    if (kind === undefined || kind.machine > machine) return []
    // A release ignores fields that it does not know.
    const wider = faults(kind.schema, schema).filter((fault) => !fault.endsWith(" is gone"))
    const has_more = typesIn(kind.schema).difference(typesIn(schema)).size > 0
    return has_more || wider.length > 0 ? [name] : []
  })

describe("the events of the log", () => {
  it("are of every kind that there was", () => {
    assert.isAbove(Object.keys(events).length, 20)
    for (const kind of Object.keys(events)) assert.isTrue(now.has(kind), `${kind} is gone`)
  })
  it("are known by their types, every one of them", () => {
    for (const { name, event } of deciders) {
      const known = now.get(name)
      assert.deepEqual(typesOf(event), known && typesIn(known.schema), name)
    }
    assert.throws(() => typesOf(Schema.String))
  })
  for (const [kind, before] of Object.entries(events)) {
    it(`of ${kind} take all that was written before`, () => {
      const after = now.get(kind)
      assert.isDefined(after)
      assert.deepEqual(after?.definitions, {}, "nothing is named apart, and so not compared")
      assert.deepEqual(before.definitions, {})
      assert.deepEqual(after && faults(before.schema, after.schema), [])
    })
  }
})

const struct = (fields: Readonly<Record<string, Form>>, required = Object.keys(fields)): Form => ({
  type: "object",
  properties: fields,
  required,
})
const text: Form = { type: "string", maxLength: 10 }
const count: Form = { type: "integer", minimum: 0 }
const tagged = (type: string, fields: Readonly<Record<string, Form>> = {}) =>
  struct({ type: { type: "string", enum: [type] }, ...fields })

/** A read model, and the kinds of aggregates whose events it reads. */
interface Shown {
  readonly service: string
  readonly version: number
  readonly parts: ReadonlyArray<Part>
}

const read: ReadonlyArray<Shown> = [
  ...[blob_storage, share_protection, capital_pressure, webhooks].map(
    ({ service, version, projections }) => {
      return { service, version, parts: projections.map(({ part }) => part) }
    },
  ),
  // The audit lists events of any type; for some it also reads fields beyond the commit's own.
  { ...system(details), parts: details.map(({ part }) => part) },
]

/** Read models whose version is unchanged although their kinds have grown. */
const stale = (
  grown: ReadonlyArray<string>,
  models: ReadonlyArray<Shown>,
  before: Readonly<Record<string, number>>,
) =>
  models
    .filter(({ service, version }) => version <= (before[service] ?? 0))
    .filter(({ parts }) => grown.some((name) => parts.some((part) => isPartOf(part, name))))
    .map(({ service }) => service)

describe("a release that has more types of events", () => {
  it("has another version of their machines, by which the release before knows them", () => {
    assert.deepEqual(unraised(events, now), [])
  })
  it("has another version of the read models that show them", () => {
    const grown = [...now].filter(([name, { schema }]) => {
      const before = events[name]?.schema
      return before === undefined || typesIn(schema).difference(typesIn(before)).size > 0
    })
    const names = grown.map(([name]) => name)
    assert.deepEqual(stale(names, read, read_models), [])
  })
  const kind = (machine: number, ...types: ReadonlyArray<string>): Kind => ({
    schema: { anyOf: types.map((type) => tagged(type)) },
    definitions: {},
    machine,
  })
  it("is found out where it has not", () => {
    const before = { a: kind(1, "A"), b: kind(1, "B") }
    assert.deepEqual(unraised(before, new Map([["a", kind(1, "A", "C")]])), ["a"])
    assert.deepEqual(unraised(before, new Map([["a", kind(2, "A", "C")]])), [])
    assert.deepEqual(unraised(before, new Map([["b", kind(1, "B")]])), [])
    const versions = Object.fromEntries(read.map(({ service, version }) => [service, version]))
    for (const [name, ...services] of [
      ["blob-storage.cluster", "blob-storage"],
      ["system.webhook", "system-webhook"],
      ["carrier-search.search", "system"],
      ["system.election"],
    ] as const) {
      assert.deepEqual(stale([name], read, versions), [...services], name)
      assert.deepEqual(stale([name], read, {}), [])
    }
  })
})

describe("the published events", () => {
  it("are what the release before promised, or more", async () => {
    assert.isAbove(Object.keys(published).length, 10)
    assert.deepEqual(broken(published, promisedOf(await services())), [])
  })
})

const base = struct({ a: text, b: count })

describe("a schema", () => {
  for (const [what, before, after] of [
    ["a field that may be absent", base, struct({ a: text, b: count, c: text }, ["a", "b"])],
    [
      "a type",
      { anyOf: [tagged("A"), tagged("B")] },
      { anyOf: [tagged("B"), tagged("A"), tagged("C")] },
    ],
    ["a longer text", text, { type: "string", maxLength: 20 }],
    ["any text", text, { type: "string" }],
    ["a number where it was whole", count, { type: "number" }],
    ["a value", { type: "string", enum: ["x"] }, { type: "string", enum: ["y", "x"] }],
    ["null", text, { anyOf: [text, { type: "null" }] }],
    ["other words", { ...text, description: "One." }, { ...text, description: "Other." }],
    ["limits apart", { type: "string", allOf: [{ maxLength: 10 }] }, text],
  ] as const) {
    it(`may be given ${what}`, () => assert.deepEqual(faults(before, after), []))
  }
  for (const [what, before, after] of [
    ["a field", base, struct({ a: text })],
    ["a field's being there", base, struct({ a: text, b: count }, ["a"])],
    ["a field's being absent", struct({ a: text }, []), struct({ a: text })],
    ["a type", { anyOf: [tagged("A"), tagged("B")] }, tagged("A")],
    [
      "a type's field",
      { anyOf: [tagged("A", { a: text }), tagged("B")] },
      { anyOf: [tagged("A"), tagged("B")] },
    ],
    ["a new field that is required", base, struct({ a: text, b: count, c: text })],
    ["a value", { type: "string", enum: ["x", "y"] }, { type: "string", enum: ["x"] }],
    ["all texts but some", text, { type: "string", enum: ["x"] }],
    ["length", text, { type: "string", maxLength: 9 }],
    ["a pattern's freedom", text, { ...text, pattern: "^a" }],
    ["small numbers", count, { type: "integer", minimum: 1 }],
    ["null", { anyOf: [text, { type: "null" }] }, text],
    ["its kind", text, count],
    ["a list's items", { type: "array", items: text }, { type: "array", items: count }],
  ] as const) {
    it(`may not lose ${what}`, () => assert.isAbove(faults(before, after).length, 0))
  }
})
