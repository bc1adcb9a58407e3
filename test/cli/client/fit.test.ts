/** Output that is no table of the API: it fits the terminal, and is whole without one. */
import { assert, describe, it } from "@effect/vitest"
import { warn } from "#adapters/doctor/finding.ts"
import { follow } from "#cli/client/system/events.ts"
import { summary } from "#cli/dashboard/ingest-outcome.ts"
import { findingText } from "#cli/doctor/doctor.ts"
import { kept, sessionWith, withServer } from "./scripted.ts"

const long = "the publisher did not respond in time ".repeat(8).trim()
const widthsOf = (text: string) => text.split("\n").map((line) => line.length)

describe("a terminal of 80 columns", () => {
  it("shows findings of doctor with wrapped reasons", () => {
    const [finding = { status: "warn", what: "", why: "" }] = [warn("publisher", long)].flat()
    const text = findingText(finding, kept(80).screen)
    for (const width of widthsOf(text)) assert.isAtMost(width, 80)
    assert.equal(text.replaceAll(/\s+/g, " "), `warn publisher ${long}`)
    assert.equal(findingText(finding, kept().screen).split("\n").length, 1)
  })

  it("shows the summary of an ingest with truncated errors", () => {
    const feeds = [{ feed: "nfci", outcome: "failed", detail: long } as const]
    for (const width of widthsOf(summary(feeds, kept(80).screen))) assert.isAtMost(width, 80)
    assert.include(summary(feeds, kept().screen), long)
  })

  it("shows events as lines with truncated data", async () => {
    const event = { time: "2026-11-20T12:00:00Z", type: "node_joined", data: { address: long } }
    const outputOf = (columns: number | undefined) =>
      withServer(
        (_, response) => {
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write(`id: a-1\ndata: ${JSON.stringify(event)}\n\n`)
        },
        async ({ url }) => {
          const { session, written } = sessionWith(url, {}, columns)
          await follow(session, { filters: [], after: undefined, count: 1 })
          return written.out
        },
      )
    assert.isAtMost(Math.max(...widthsOf(await outputOf(80))), 80)
    assert.include(await outputOf(undefined), long)
  })
})
