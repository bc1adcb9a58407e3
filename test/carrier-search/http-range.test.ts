/** Valid requests. Source: document 3 §7 B; decisions, carrier validation and carrier range. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Searched, startSearch } from "./served.ts"

let served: Searched
beforeAll(async () => {
  served = await startSearch()
})
afterAll(() => served.stop())

const refused = async (query: string) => {
  const answer = await served.fetch(`/api/search${query}`)
  const { error, ...rest } = await answer.json()
  expect(rest).toEqual({})
  expect(answer.headers.get("content-type")).toBe("application/json")
  return [answer.status, error]
}

const integer = "must be an integer, in digits only"

describe("a range is refused with 400", () => {
  it.each([
    ["", "'start' is required"],
    ["?end=5", "'start' is required"],
    ["?start=5", "'end' is required"],
    // Missing parameters are reported before invalid ones.
    ["?start=x", "'end' is required"],
    ["?start=1e3&end=2000", `'start' ${integer}`],
    ["?start=1.0&end=2", `'start' ${integer}`],
    ["?start=%2B5&end=9", `'start' ${integer}`],
    ["?start=+5&end=9", `'start' ${integer}`],
    ["?start=%205&end=9", `'start' ${integer}`],
    ["?start=5%20&end=9", `'start' ${integer}`],
    ["?start=0x1f&end=99", `'start' ${integer}`],
    ["?start=%D9%A1&end=9", `'start' ${integer}`],
    ["?start=&end=9", `'start' ${integer}`],
    ["?start=1&end=", `'end' ${integer}`],
    ["?start&end=9", `'start' ${integer}`],
    ["?start=1&end=two", `'end' ${integer}`],
    // Both are checked as integers before either is checked as positive.
    ["?start=0&end=two", `'end' ${integer}`],
    ["?start=0&end=5", "'start' must be positive"],
    ["?start=00&end=5", "'start' must be positive"],
    ["?start=-5&end=5", "'start' must be positive"],
    ["?start=5&end=0", "'end' must be positive"],
    ["?start=1&end=100000000", "'end' must be at most 99999999"],
    ["?start=99999999999999999999999&end=1", "'start' must be at most 99999999"],
    ["?start=10&end=9", "'end' must be greater than or equal to 'start'"],
    ["?start=2000001&end=1", "'end' must be greater than or equal to 'start'"],
    ["?start=1&end=1000001", "the range has 1000001 MC numbers; the maximum is 1000000"],
    ["?start=1&start=2&end=3", "'start' must be given once"],
    ["?start=1&end=3&end=3", "'end' must be given once"],
  ])("%s", async (query, error) => {
    expect(await refused(query)).toEqual([400, error])
  })

  it("and leaves no fact, and asks no registry", async () => {
    await served.facts()
    const { requests } = served.counts
    await refused("?start=10&end=9")
    expect(await served.facts()).toEqual([])
    expect(served.counts.requests).toBe(requests)
  })
})

describe("a range is taken", () => {
  const found = async (query: string) =>
    (await (await served.fetch(`/api/search${query}`)).json()).carriers

  it("of one number", async () => {
    expect(await found("?start=3&end=3")).toHaveLength(1)
    expect(await found("?start=4&end=4")).toEqual([])
  })

  it("with both ends", async () => {
    const numbers = (await found("?start=3&end=9")).map(
      ({ mcNumber }: { mcNumber: number }) => mcNumber,
    )
    expect(numbers).toEqual([3, 6, 9])
  })

  it("with leading zeros, which are digits", async () => {
    expect(await found("?start=003&end=0003")).toHaveLength(1)
  })

  it("up to the largest number", async () => {
    expect(await found("?start=99999999&end=99999999")).toHaveLength(1)
  })

  it("with any other parameters", async () => {
    expect(await found("?end=3&start=3&x=1&x=2")).toHaveLength(1)
  })

  it("of carrier.max_range numbers, which the operator sets", async () => {
    const small = await startSearch({ carrier: { max_range: 10 } })
    expect((await small.fetch("/api/search?start=1&end=10")).status).toBe(200)
    const answer = await small.fetch("/api/search?start=1&end=11")
    expect(answer.status).toBe(400)
    const error = "the range has 11 MC numbers; the maximum is 10"
    expect(await answer.json()).toEqual({ error })
    await small.stop()
  })
})
