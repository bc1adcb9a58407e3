import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { BlobStored, VolumeEvent } from "#events/blob-storage/volume.ts"
import { decoder, maker } from "#schemas/as-is.ts"
import { RecordFacts } from "#schemas/blob-storage/volume.ts"
import type { Message } from "#schemas/message.ts"
import { deciders } from "#server/aggregate-kinds.ts"
import { blob, fact } from "../world/blob-storage/fact.ts"

const seed = "as is"

type EventSchema = Schema.ConstraintCodec<Message, unknown>

/** Whatever can happen, as the log has it. */
const stored = (event: EventSchema, count: number): ReadonlyArray<Record<string, unknown>> => {
  const encode = Schema.encodeSync(event)
  const samples = Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(event), { count, seed }))
  return samples.map((sample) => JSON.parse(JSON.stringify(encode(sample))))
}

/** Of days that are all of one year no sample is found. */
const unsampled = /^capital-pressure\.(observation|price|composite)$/
const sampled = deciders.filter(({ name }) => !unsampled.test(name))

const strange = [null, 1, -1, 1.5, "", "x", true, [], [{}], {}, { x: 1 }]

/** The event, and as it never is: each field gone, strange, or elsewhere, or one too many. */
const changes = (event: Record<string, unknown>) => [
  event,
  Object.fromEntries(Object.entries(event).reverse()),
  { ...event, more: 1 },
  { more: 1, ...event },
  ...Object.keys(event).flatMap((name) => [
    Object.fromEntries(Object.entries(event).filter(([other]) => other !== name)),
    ...strange.map((value) => ({ ...event, [name]: value })),
  ]),
  ...strange,
]

/** What comes of it as bytes, its fields in their order; nothing where it is refused. */
const outcome = (decode: (value: unknown) => unknown, value: unknown) => {
  try {
    return JSON.stringify(decode(value))
  } catch {
    return undefined
  }
}

describe("what is as its schema would answer it", () => {
  it.each(sampled.map(({ name, event }) => [name, event] as const))(
    "%s: is decoded as the schema decodes it, and refused as it refuses",
    (_, event) => {
      const quick = decoder(event)
      const plain = Schema.decodeUnknownSync(event)
      for (const value of stored(event, 20).flatMap(changes)) {
        assert.strictEqual(outcome(quick, value), outcome(plain, value), JSON.stringify(value))
      }
    },
  )

  it.each([
    [
      "a field that is another one encoded",
      Schema.Struct({ a: Schema.FiniteFromString }),
      { a: 1 },
    ],
    [
      "a member of a union that strips what another keeps",
      Schema.Union([
        Schema.Struct({ a: Schema.String }),
        Schema.Struct({ a: Schema.String, b: Schema.String }),
      ]),
      { a: "x", b: "y" },
    ],
    [
      "a union of which one member alone may take it",
      Schema.Union([Schema.Number, Schema.Int], { mode: "oneOf" }),
      1,
    ],
    ["a struct of nothing", Schema.Struct({}), { a: 1 }],
    [
      "a value of a record that is another one",
      Schema.Record(Schema.String, Schema.Int),
      { a: "" },
    ],
    ["an item of an array that is another one", Schema.Array(Schema.Int), [1, "2"]],
    ["a tuple", Schema.Tuple([Schema.Int]), [1, 2]],
  ] as const)("is not told of %s", (_, schema, value) => {
    // Different schemas, asked of an unknown value each.
    const one = schema as Schema.Codec<unknown, unknown>
    assert.strictEqual(outcome(decoder(one), value), outcome(Schema.decodeUnknownSync(one), value))
  })

  it("is answered itself", () => {
    const decode = decoder(VolumeEvent)
    for (const event of stored(VolumeEvent, 200)) assert.strictEqual<unknown>(decode(event), event)
  })

  it("is not answered itself where the schema would answer another", () => {
    const decode = decoder(VolumeEvent)
    const [event] = stored(VolumeEvent, 1)
    assert.doesNotHaveAnyKeys(decode({ ...event, more: 1 }), ["more"])
  })

  it("is made as the schema makes it, and refused as it refuses", () => {
    const make = maker(RecordFacts)
    const command = (...facts: ReadonlyArray<unknown>) => ({
      type: "RecordFacts",
      from: 0,
      to: 1,
      facts,
    })
    const commands = [
      command(fact(1, "stored")),
      ...changes({ ...fact(1, "stored") }).map((one) => command(one)),
      ...changes(command(fact(1, "stored"), fact(2, "deleted"))),
      command(...Array.from({ length: 501 }, () => fact(1, "stored"))),
    ]
    for (const value of commands) {
      // What the types would not let through is to be refused.
      const quick = outcome((value) => make(value as typeof RecordFacts.Type), value)
      const plain = outcome((value) => RecordFacts.make(value as typeof RecordFacts.Type), value)
      assert.strictEqual(quick, plain)
    }
  })

  it("is made itself where its fields have their order", () => {
    const event = BlobStored.make({ ...blob, after: 0, cursor: 1 })
    assert.strictEqual(maker(BlobStored)(event), event)
  })
})
