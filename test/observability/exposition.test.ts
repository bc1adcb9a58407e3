/** Metrics as text: the output is accurate, and the oracle detects violations. */
import { execFileSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { familyText, histogramText, plainText } from "#schemas/metric.ts"
import { badNames, parsed } from "./exposition.ts"

const family = { name: "almanac_things", type: "gauge", help: "Things, by kind." } as const
const times = { name: "almanac_time_seconds", type: "histogram", help: "Times." } as const

describe("metrics as text", () => {
  it("keep what labels and helps have in them", () => {
    const kind = 'a"b\\c\nd'
    const text = familyText({ ...family, help: "One\nline." }, [[1.5, { kind }]])
    expect(text.split("\n")).toHaveLength(4)
    const [sample] = parsed(text).get("almanac_things")?.samples ?? []
    expect(sample?.labels.kind).toBe(String.raw`a\"b\\c\nd`)
    expect(sample?.value).toBe(1.5)
  })

  it("count in buckets up to each bound", () => {
    const series = { labels: { route: "/" }, counts: [2, 0, 3], sum: 7.5 }
    const found = parsed(histogramText(times, [0.1, 1], [series])).get("almanac_time_seconds")
    expect(found?.samples.map(({ name, labels, value }) => [name, labels.le, value])).toEqual([
      ["almanac_time_seconds_bucket", "0.1", 2],
      ["almanac_time_seconds_bucket", "1", 2],
      ["almanac_time_seconds_bucket", "+Inf", 5],
      ["almanac_time_seconds_sum", undefined, 7.5],
      ["almanac_time_seconds_count", undefined, 5],
    ])
  })

  it("include metrics without a sample, and large numbers in full", () => {
    expect(parsed(familyText(family, [])).get("almanac_things")?.samples).toEqual([])
    const text = plainText("almanac_", [["counter", "bytes_total", "Bytes.", 2n ** 60n]])
    expect(text).toContain("almanac_bytes_total 1152921504606846976\n")
    const ends = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN]
    const infinite = familyText(
      family,
      ends.map((value, place) => [value, { place: `${place}` }]),
    )
    expect(infinite.match(/(?<=\} ).*$/gm)).toEqual(["+Inf", "-Inf", "NaN"])
  })
})

describe("what a process counts", () => {
  // Runs in its own process, because other tests also count.
  it("begins at zero: of a series that begins at one, Prometheus sees no increase", () => {
    const code = `
      import { Effect } from "effect"
      import { processMetrics } from "#adapters/process-metrics.ts"
      import { dropCounter } from "#adapters/spool/memory.ts"
      import "#journal"
      const text = () => Effect.runPromise(Effect.scoped(Effect.flatten(processMetrics)))
      const before = await text()
      await Effect.runPromise(dropCounter("test").drop)
      console.log(JSON.stringify([before, await text()]))
    `
    const args = ["--input-type=module", "--eval", code]
    // The loss is logged first.
    const output = execFileSync(process.execPath, args, { encoding: "utf8" })
    const [before, after]: [string, string] = JSON.parse(output.trim().split("\n").at(-1) ?? "")
    const values = (text: string, name: string) =>
      parsed(text)
        .get(name)
        ?.samples.map(({ labels, value }) => [Object.values(labels)[0], value])
    expect(values(before, "almanac_spool_dropped_total")).toEqual([[undefined, 0]])
    expect(values(before, "almanac_log_append_failures_total")).toEqual(
      expect.arrayContaining(["conflict", "unavailable", "unknown"].map((reason) => [reason, 0])),
    )
    expect(parsed(after).get("almanac_spool_dropped_total")?.samples[0]?.value).toBe(1)
  })
})

const head = "# HELP almanac_a A.\n# TYPE almanac_a gauge\n"
const histogram = "# HELP almanac_h H.\n# TYPE almanac_h histogram\n"

describe("the oracle", () => {
  const broken = [
    ["a line that does not end", `${head}almanac_a 1`],
    ["a sample of another family", `${head}almanac_b 1\n`],
    ["a family without help", "# TYPE almanac_a gauge\nalmanac_a 1\n"],
    ["a family twice", head + head],
    ["a type that is none", "# HELP almanac_a A.\n# TYPE almanac_a number\n"],
    ["a series twice", `${head}almanac_a{x="1"} 1\nalmanac_a{x="1"} 2\n`],
    ["a label twice", `${head}almanac_a{x="1",x="2"} 1\n`],
    ["a label without its quotes", `${head}almanac_a{x=1} 1\n`],
    ["a value that is none", `${head}almanac_a one\n`],
    [
      "buckets that fall",
      `${histogram}almanac_h_bucket{le="1"} 2\nalmanac_h_bucket{le="+Inf"} 1\n` +
        "almanac_h_sum 1\nalmanac_h_count 1\n",
    ],
    ["a histogram that does not end", `${histogram}almanac_h_bucket{le="1"} 2\nalmanac_h_sum 1\n`],
  ] as const
  for (const [what, text] of broken) it(`sees ${what}`, () => expect(() => parsed(text)).toThrow())

  it("sees names that break the rules", () => {
    const named = (name: string, type = "gauge", help = "It is.") => ({
      name,
      type,
      help,
      samples: [],
    })
    const wrong = [
      named("almanac_things_total"),
      named("almanac_things", "counter"),
      named("almanac_wait_ms"),
      named("almanac_seconds_waited"),
      named("things"),
      named("almanac_things", "gauge", "things"),
    ]
    for (const one of wrong) expect(badNames([one])).toHaveLength(1)
    expect(
      badNames([named("almanac_things"), named("almanac_a_seconds_total", "counter")]),
    ).toEqual([])
  })
})
