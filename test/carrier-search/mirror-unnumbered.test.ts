/** Carriers of the legacy file without a USDOT number: each appears exactly once. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, Stream } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Registry } from "#actors/carrier-search/registry.ts"
import { registryMirror } from "#adapters/carrier-search/mirror.ts"
import { textOf } from "../contract/registry.ts"
import { seeded } from "../world/seeded.ts"
import {
  carriersIn,
  type Given,
  importTexts,
  legacy_head,
  legacyFile,
  motusFile,
} from "./mirror-given.ts"

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-unnumbered-"))
  path = join(folder, "carriers.sqlite")
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const registry = Effect.map(Layer.build(Layer.suspend(() => registryMirror({ path }))), (built) =>
  Context.get(built, Registry),
)

/** The mirror's own status. */
const source = () =>
  Effect.flatMap(registry, ({ source }) => source).pipe(Effect.scoped, Effect.runPromise)

/** The search results for these numbers, as received: `119 ALPHA`. */
const searched = (start: number, end: number) =>
  Effect.gen(function* () {
    const { search } = yield* registry
    const pieces = yield* Stream.runCollect(search({ start, end }, "ndjson"))
    const lines = textOf(pieces).split("\n").slice(0, -1)
    return lines.map((line) => {
      const { mcNumber, name } = JSON.parse(line)
      return `${mcNumber} ${name}`
    })
  }).pipe(Effect.scoped, Effect.runPromise)

/** All carriers of the mirror in the same form, after an import of these files. */
const shownOf = async (given: Given) => {
  const { carriers } = await importTexts(path, given)
  const found = carriersIn(path).map((text) => text.replace(/^MC (\d+), USDOT \d+:/, "$1"))
  expect(carriers).toBe(found.length)
  return found
}
const ofLegacy = (...rows: ReadonlyArray<string>) => shownOf({ "l.csv": legacyFile(...rows) })

const permuted = (rows: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  rows.length < 2
    ? [rows]
    : rows.flatMap((row, at) => permuted(rows.toSpliced(at, 1)).map((rest) => [row, ...rest]))

describe("rows of legacy without a USDOT number", () => {
  const alpha = "MC000119,,A,N,N,ALPHA TRUCKING"
  const beta = "MC000119,00000000,N,A,N,BETA HAULING"
  const both = ["119 ALPHA TRUCKING", "119 BETA HAULING"]

  it("are one carrier for each docket, by name, in any order", async () => {
    expect(await ofLegacy(alpha, beta)).toEqual(both)
    expect(await ofLegacy(beta, alpha)).toEqual(both)
    expect(await searched(1, 99_999_999)).toEqual(both)
    expect(await searched(119, 119)).toEqual(both)
    expect(await searched(120, 120)).toEqual([])
    expect(await shownOf({ "1.csv": legacyFile(beta), "2.csv": legacyFile(alpha) })).toEqual(both)
  })

  it("that say the same twice count once, in one file or two", async () => {
    expect(await ofLegacy(alpha, beta, beta, alpha)).toEqual(both)
    const file = legacyFile(alpha, "MC119,,N,A,N,  ALPHA TRUCKING ", beta)
    expect(await shownOf({ "1.csv": file, "2.csv": file })).toEqual(both)
  })

  it("are dropped by no broker of another name", async () => {
    const [carrier, broker] = ["MC000120,,A,N,N,CARRIER CO", "MC000120,,N,N,A,OTHER BROKER"]
    expect(await ofLegacy(carrier, broker)).toEqual(["120 CARRIER CO"])
    expect(await ofLegacy(broker, carrier)).toEqual(["120 CARRIER CO"])
    expect(await ofLegacy(carrier, "MC120,5,N,N,A,CARRIER CO")).toEqual(["120 CARRIER CO"])
  })

  it("are dropped by a broker of their own name and docket", async () => {
    const rows = [alpha, "MC119,,A,N,A,ALPHA TRUCKING", "MC119,,A,N,N,ALPHA TRUCKING", beta]
    for (const those of permuted(rows)) {
      expect(await ofLegacy(...those)).toEqual(["119 BETA HAULING"])
    }
    const elsewhere = "MC118,,N,N,A,ALPHA TRUCKING"
    expect(await ofLegacy(elsewhere, alpha)).toEqual(["119 ALPHA TRUCKING"])
  })

  it("replace no carrier with a USDOT number, regardless of the number", async () => {
    const numbered = ["MC7,1,A,N,N,ONE", "MC7,2,A,N,N,TWO", "MC7,199999999,A,N,N,LAST"]
    const rows = [...numbered, "MC7,,A,N,N,C", "MC7,,A,N,N,A", "MC7,,A,N,N,B"]
    const others = ["MC6,199999999,A,N,N,BEFORE", "MC8,,A,N,N,AFTER"]
    const all = await ofLegacy(...rows, ...others)
    expect(all.toSorted()).toEqual(
      ["6 BEFORE", "7 A", "7 B", "7 C", "7 LAST", "7 ONE", "7 TWO", "8 AFTER"].toSorted(),
    )
    expect(await ofLegacy(...others, ...rows.toReversed())).toEqual(all)
    expect(await searched(6, 8)).toEqual(all)
    // A broker's USDOT number drops the carriers with that number, and none without a number.
    expect(await ofLegacy(...rows, "MC7,1,N,N,A,ONE", "MC7,2,N,N,A,TWO")).toEqual(
      ["A", "B", "C", "LAST"].map((name) => `7 ${name}`),
    )
  })

  it("count among the carriers of the mirror, for any number of dockets", async () => {
    await ofLegacy(alpha, beta, "MC119,5,A,N,N,GAMMA", "MC120,,I,N,N,DELTA")
    expect(await source()).toMatchObject({ carriers: 3, dockets: 2 })
    await ofLegacy("MC120,,I,N,N,DELTA", "MC121,,N,N,A,BROKER")
    expect(await source()).toMatchObject({ carriers: 0, dockets: 2 })
  })

  it("are kept in addition to the rows of Motus for their docket", async () => {
    const motus = motusFile(
      "MC119,1,Motor Carrier of Property,Active,NEW",
      "MC119,2,Broker of Property,Active,ALPHA TRUCKING",
    )
    const carriers = await shownOf({ "l.csv": legacyFile(alpha, beta), "m.csv": motus })
    expect(carriers.toSorted()).toEqual([...both, "119 NEW"])
  })

  it("count as active if they are shown, and as unusable if they are not read", async () => {
    const long = "x".repeat(1001)
    const rows = [alpha, beta, `MC1,,N,N,A,${long}`, `MC1,,A,N,N,${long}`, "MC1,,A,N,,X"]
    const { files } = await importTexts(path, { "l.csv": legacyFile(...rows, "FF1,,A,N,N,X") })
    expect(files[0]).toMatchObject({ rows: 6, active: 2, superseded: 0, other: 1 })
    expect(files[0]?.rejected.map(({ problem }) => problem)).toEqual([
      "a name that is too long",
      "no status",
    ])
    expect(carriersIn(path)).toHaveLength(2)
  })
})

describe("many rows of legacy without a USDOT number", () => {
  it("are as a client finds them that compares each with all others", async () => {
    const seed = 20_261_127
    const random = seeded(seed)
    const row = () => ({
      mc: random.between(1, 5),
      dot: random.pick([0, 0, 1, 2, 3]),
      is_active: random.next() < 0.7,
      is_broker: random.next() < 0.25,
      name: random.pick(["", "A", "a", "B", "Ž, INC", 'THE "BEST"']),
    })
    for (let round = 0; round < 25; round++) {
      const rows = Array.from({ length: random.between(1, 40) }, row)
      const visible = rows.filter(({ is_active, is_broker }) => is_active && !is_broker)
      const idOf = ({ mc, dot, name }: (typeof rows)[number]) => `${mc} ${dot} ${dot ? "" : name}`
      const brokers = rows.filter(({ is_broker }) => is_broker).map(idOf)
      // The last name of a USDOT number wins.
      const kept = new Map(visible.map((one) => [idOf(one), `${one.mc} ${one.name}`]))
      for (const id of brokers) kept.delete(id)
      const lines = rows.map(({ mc, dot, is_active, is_broker, name }) => {
        const cells = [`MC${mc}`, dot || "", is_active ? "A" : "I", "N", is_broker ? "A" : "N"]
        return `${cells.join(",")},"${name.replaceAll('"', '""')}"`
      })
      const found = await ofLegacy(...lines)
      expect(found.toSorted(), `seed ${seed}, round ${round}`).toEqual(
        [...kept.values()].toSorted(),
      )
      const mcs = found.map((text) => Number.parseInt(text, 10))
      expect(mcs).toEqual(mcs.toSorted((one, other) => one - other))
    }
  })

  it("are all found, beyond the batch size of an import or a search", async () => {
    const dockets = 25_000
    const rows = Array.from({ length: dockets * 3 }, (_, n) => {
      const mc = 1 + ((n * 7919) % dockets)
      return `MC${mc},,A,N,N,${"ZYX"[Math.floor(n / dockets)]} OF ${mc}`
    })
    await importTexts(path, { "l.csv": [legacy_head, ...rows].join("\n") })
    const expected = Array.from({ length: dockets }, (_, n) =>
      ["X", "Y", "Z"].map((letter) => `${n + 1} ${letter} OF ${n + 1}`),
    ).flat()
    const found = await searched(1, 99_999_999)
    expect(found).toHaveLength(expected.length)
    expect(found.findIndex((one, at) => one !== expected[at])).toBe(-1)
  })
})
