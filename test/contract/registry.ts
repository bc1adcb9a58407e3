/** Contract of every carrier registry. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, type Layer, Schema, Stream } from "effect"
import fc from "fast-check"
import { type Piece, Registry } from "#actors/carrier-search/registry.ts"
import { mc_number_max, type Range, total } from "#schemas/carrier-search/carrier.ts"
import { type Format, formats, rowOf } from "#schemas/carrier-search/format.ts"
import { Source } from "#schemas/carrier-search/source.ts"

/** A carrier registered under a docket number; several carriers may share a number. */
export interface Docket {
  readonly mc: number
  readonly dot: number
  readonly name: string
  /** Whether its operating authority is active. */
  readonly active: boolean
  /** False for a broker that is also a carrier. */
  readonly carrier_only: boolean
}

export interface Answer {
  readonly text: string
  readonly found: number
}

/** A client that looks up one number after another. */
export const naively = (dockets: ReadonlyArray<Docket>, range: Range, format: Format): Answer => {
  const rows: Array<string> = []
  for (let mc = range.start; mc <= range.end; mc += 1) {
    const those = dockets.filter((docket) => docket.mc === mc)
    for (const { name, active, carrier_only } of those.toSorted((a, b) => a.dot - b.dot)) {
      if (active && carrier_only) rows.push(rowOf(mc, name, format))
    }
  }
  return { text: rows.join(""), found: rows.length }
}

const utf8 = new TextDecoder()

export const textOf = (pieces: ReadonlyArray<Piece>): string =>
  pieces.map(({ rows }) => utf8.decode(rows)).join("")

/** All pieces of a search, after checking their counts. */
export const searched = Effect.fnUntraced(function* (range: Range, format: Format = "ndjson") {
  const registry = yield* Registry
  const pieces: ReadonlyArray<Piece> = yield* Stream.runCollect(registry.search(range, format))
  let [done, found] = [0, 0]
  for (const piece of pieces) {
    assert.isAbove(piece.done, done, "each piece answers more numbers")
    done = piece.done
    found += format === "csv" ? 0 : (utf8.decode(piece.rows).match(/"mcNumber":/g)?.length ?? 0)
    if (format !== "csv") assert.strictEqual(piece.found, found, "found counts the rows so far")
  }
  assert.strictEqual(done, total(range), "all numbers are answered")
  return { text: textOf(pieces), found: pieces.at(-1)?.found ?? 0, pieces }
})

const carrier = (mc: number, more: Partial<Docket> = {}): Docket => ({
  mc,
  dot: 1_000_000 + mc,
  name: `CARRIER ${mc}`,
  active: true,
  carrier_only: true,
  ...more,
})

const scene: ReadonlyArray<Docket> = [
  carrier(7),
  carrier(9, { active: false }),
  carrier(10, { carrier_only: false }),
  carrier(11, { active: false, carrier_only: false }),
  // One number of several carriers, unordered; one of them is filtered out.
  carrier(15, { dot: 3_000_000, name: "THIRD" }),
  carrier(15, { dot: 5, name: "FIRST" }),
  carrier(15, { dot: 44, name: "BROKER", carrier_only: false }),
  carrier(16, { name: 'SMITH, "J" & SONS' }),
  carrier(17, { name: "=1+1" }),
  carrier(18, { name: "ÅKERI ČESKÝ 運送 LLC" }),
  carrier(mc_number_max, { name: "THE LAST" }),
]

const named = fc.oneof(
  fc.constantFrom("A, B", '"Q" CO', "=SUM(1)", "-X", "D'OR", "Ž"),
  fc.stringMatching(/^[A-Z][A-Z &.,'-]{0,30}[A-Z]$/),
)

const span = 120

const dockets: fc.Arbitrary<ReadonlyArray<Docket>> = fc.uniqueArray(
  fc.record({
    mc: fc.integer({ min: 1, max: span }),
    dot: fc.integer({ min: 1, max: 4_000_000 }),
    name: named,
    active: fc.boolean(),
    carrier_only: fc.boolean(),
  }),
  // A USDOT number belongs to one carrier, with the same name and authority everywhere.
  { maxLength: 80, selector: ({ dot }) => dot },
)

const runs = 15

type Make = (dockets: ReadonlyArray<Docket>) => Layer.Layer<Registry, unknown>

/** Runs over each adapter; `make` returns a registry with exactly these dockets. */
export const registryContract = (name: string, make: Make): void => {
  const given = (title: string, body: Effect.Effect<void, unknown, Registry>) =>
    it.live(title, () => Effect.provide(body, make(scene)))

  describe(name, () => {
    rangeContract(given)
    endsContract(given)

    it.live("answers as a client that asks one number after the other", () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            dockets,
            fc.tuple(fc.integer({ min: 1, max: span }), fc.integer({ min: 1, max: span })),
            fc.constantFrom(...formats),
            async (those, ends, format) => {
              const range = { start: Math.min(...ends), end: Math.max(...ends) }
              const answer = searched(range, format).pipe(Effect.provide(make(those)))
              const { text, found } = await Effect.runPromise(answer)
              assert.deepEqual({ text, found }, naively(those, range, format))
            },
          ),
          { numRuns: runs },
        ),
      ),
    )
  })
}

type Given = (title: string, body: Effect.Effect<void, unknown, Registry>) => void

const rangeContract = (given: Given) => {
  for (const format of formats) {
    given(
      `answers rows of ${format}, ascending by number, then by USDOT number`,
      Effect.gen(function* () {
        const range = { start: 1, end: 40 }
        const { text, found } = yield* searched(range, format)
        assert.deepEqual({ text, found }, naively(scene, range, format))
        assert.strictEqual(found, 6)
      }),
    )
  }

  given(
    "includes both ends, and nothing outside them",
    Effect.gen(function* () {
      const those = yield* searched({ start: 7, end: 15 })
      assert.deepEqual(those.text, naively(scene, { start: 7, end: 15 }, "ndjson").text)
      assert.strictEqual(those.found, 3)
      assert.strictEqual((yield* searched({ start: 8, end: 14 })).found, 0)
      assert.strictEqual((yield* searched({ start: 7, end: 7 })).found, 1)
    }),
  )

  given(
    "counts all numbers where none is found",
    Effect.gen(function* () {
      const { text, found } = yield* searched({ start: 500, end: 620 })
      assert.deepEqual({ text, found }, { text: "", found: 0 })
    }),
  )

  given(
    "knows the largest number",
    Effect.gen(function* () {
      const range = { start: mc_number_max - 3, end: mc_number_max }
      assert.match((yield* searched(range)).text, /THE LAST/)
    }),
  )
}

const endsContract = (given: Given) => {
  given(
    "answers on after a search that was ended early",
    Effect.gen(function* () {
      const { search } = yield* Registry
      const range = { start: 1, end: 300 }
      const first = yield* Stream.runCollect(Stream.take(search(range, "csv"), 1))
      assert.lengthOf(first, 1)
      const none = yield* Effect.exit(Stream.runForEach(search(range, "csv"), () => Effect.die("")))
      assert.isTrue(none._tag === "Failure" && Cause.hasDies(none.cause))
      assert.strictEqual((yield* searched(range)).found, 6)
    }),
  )

  given(
    "answers several searches at once, each in full",
    Effect.gen(function* () {
      const ranges = [1, 5, 10, 16].map((start) => ({ start, end: 60 }))
      const answers = yield* Effect.forEach(ranges, (range) => searched(range), {
        concurrency: "unbounded",
      })
      for (const [n, range] of ranges.entries()) {
        assert.strictEqual(answers[n]?.text, naively(scene, range, "ndjson").text)
      }
    }),
  )

  given(
    "reports that it is healthy",
    Effect.gen(function* () {
      const registry = yield* Registry
      yield* searched({ start: 1, end: 20 })
      const source = yield* registry.source
      assert.deepEqual(yield* Schema.decodeUnknownEffect(Schema.toType(Source))(source), source)
      assert.isTrue(source.is_healthy)
      assert.isNull(source.detail)
    }),
  )
}
