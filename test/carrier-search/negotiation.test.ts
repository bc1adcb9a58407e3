import { describe, expect, it } from "vitest"
import { formatOf } from "#gateway/carrier-search/negotiation.ts"

describe("the form of an answer", () => {
  it.each([
    [undefined, "json"],
    ["", "json"],
    ["*/*", "json"],
    ["application/json", "json"],
    ["APPLICATION/JSON", "json"],
    ["application/json; charset=utf-8", "json"],
    ["application/*", "json"],
    ["application/x-ndjson", "ndjson"],
    ["text/csv", "csv"],
    ["text/csv;header=present", "csv"],
    ["text/*", "csv"],
    // A browser's default header.
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "json"],
    ["application/json;q=0.5, text/csv", "csv"],
    ["application/json;q=0.5, text/csv;q=0.4", "json"],
    ["text/csv;q=0.1, application/x-ndjson;q=0.2", "ndjson"],
    // At equal weight, a named type beats a wildcard.
    ["*/*, text/csv", "csv"],
    ["text/csv, application/json", "json"],
    // The most specific range decides.
    ["application/json;q=0, */*", "ndjson"],
    ["application/json;q=0, application/x-ndjson;q=0, */*;q=0.1", "csv"],
    ["application/*;q=0, */*", "csv"],
    ["text/csv;q=1.000", "csv"],
  ])("for %s is %s", (accept, format) => {
    expect(formatOf(accept)).toBe(format)
  })

  it.each([
    "text/html",
    "image/*",
    "application/json;q=0",
    "application/json;q=0.000",
    "text/csv;q=0, application/*;q=0",
    "*/*;q=0",
    "json",
  ])("for %s there is none", (accept) => {
    expect(formatOf(accept)).toBeUndefined()
  })
})
