/** Following events: parsing a stream, interruptions, and an unavailable server. */
import { assert, describe, it } from "@effect/vitest"
import { eventsIn, follow } from "#cli/client/system/events.ts"
import { endingOf, json, sessionWith, withServer } from "./scripted.ts"

const past = "Sun, 06 Nov 1994 08:49:37 GMT"

/** The server's successive responses before it is available. */
const refusals: ReadonlyArray<readonly [number, Record<string, string>?]> = [
  [500],
  [429, { "retry-after": "1" }],
  [503, { "retry-after": past }],
  ...Array.from({ length: 8 }, () => [503] as const),
]

describe("a stream of events", () => {
  const messages = async (parts: ReadonlyArray<string>) => {
    const bytes = async function* () {
      for (const part of parts) yield new TextEncoder().encode(part)
    }
    const all: Array<string> = []
    for await (const { id, data } of eventsIn(bytes())) all.push(`${id}:${data}`)
    return all
  }

  it("is parsed with any chunk boundaries and line endings", async () => {
    const text =
      ': connected\n\nid: 1\nevent: a\ndata: {"x":1}\n\nid: 2\r\ndata: b\r\ndata: c\r\n\r\n'
    const whole = ['1:{"x":1}', "2:b\nc"]
    assert.deepEqual(await messages([text]), whole)
    assert.deepEqual(await messages(text.split("")), whole)
    assert.deepEqual(await messages([`${text}id: 3\ndata: not ended`]), whole)
  })

  it("limits the size of a line and of an event", async () => {
    const long = "x".repeat(2 ** 20)
    const whole = `data: ${long}\n\n`
    assert.equal((await messages([whole, whole, whole])).length, 3)
    for (const endless of ["", "\ndata: "]) {
      const parts = ["data: ", ...Array.from({ length: 3 }, () => `${long}${endless}`)]
      const { message } = await endingOf(messages(parts))
      assert.equal(message, "An event of the stream is too long")
    }
  })

  it("resumes after a break without loss or repetition", () =>
    withServer(
      ({ headers }, answer, nth) => {
        if (nth === 2) return void answer.destroy()
        const from = Number(headers["last-event-id"] ?? 0)
        answer.writeHead(200, { "content-type": "text/event-stream" }).write(": connected\n\n")
        for (const id of [from + 1, from + 2]) {
          answer.write(`id: ${id}\nevent: e\ndata: {"id":${id}}\n\n`)
        }
        // The third event is cut off in the middle.
        answer.write(`id: ${from + 3}\nevent: e\nda`, () => answer.destroy())
      },
      async ({ url, heard }) => {
        const { session, written } = sessionWith(url, { json: true })
        await follow(session, { filters: [], after: "0", count: 5 })
        const ids = written.out
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).id)
        assert.deepEqual(ids, [1, 2, 3, 4, 5])
        const from = heard.map(({ headers }) => headers["last-event-id"])
        assert.deepEqual(from, ["0", "2", "2", "4"])
      },
    ))

  it("resumes from its start if it breaks before its first event", () =>
    withServer(
      (_, answer, nth) => {
        answer.writeHead(200, {
          "content-type": "text/event-stream",
          date: "Sun, 22 Nov 2026 08:00:00 GMT",
        })
        if (nth === 1) return answer.write(": connected\n\n", () => answer.destroy())
        answer.write('id: 7\nevent: e\ndata: {"id":7}\n\n')
      },
      async ({ url, heard }) => {
        const { session } = sessionWith(url, { json: true })
        await follow(session, { filters: [["type", "e"]], after: undefined, count: 1 })
        assert.deepEqual(
          heard.map(({ path }) => path),
          ["/v1/events?type=e", "/v1/events?type=e&since=2026-11-22T08%3A00%3A00.000Z"],
        )
      },
    ))

  it("resumes after an outage of any length", () =>
    withServer(
      (_, answer, nth) => {
        if (nth > 1 && nth < 40) {
          if (nth % 2 === 0) return void answer.destroy()
          return json(answer, 502, { error: "bad gateway" })
        }
        answer.writeHead(200, { "content-type": "text/event-stream" })
        answer.write(`id: ${nth}\nevent: e\ndata: {"id":${nth}}\n\n`, () => answer.destroy())
      },
      async ({ url, heard }) => {
        const { session, written } = sessionWith(url, { json: true })
        await follow(session, { filters: [], after: "0", count: 2 }, { first: 1, max: 2 })
        assert.equal(heard.length, 40)
        assert.equal(heard.at(-1)?.headers["last-event-id"], "1")
        assert.equal(
          written.err,
          [
            `No response from ${url} to GET /v1/events: connection lost\n`,
            "  reconnecting until it succeeds; the last event was 1.\n",
            "502: bad gateway\n  reconnecting until it succeeds; the last event was 1.\n",
            "Connected again.\n",
          ].join(""),
        )
      },
    ))

  it("is read no faster than its events are printed", () =>
    withServer(
      (_, answer) => {
        answer.writeHead(200, { "content-type": "text/event-stream" })
        for (let id = 1; id <= 50; id++) answer.write(`id: ${id}\nevent: e\ndata: {"id":${id}}\n\n`)
      },
      async ({ url }) => {
        const { session, written } = sessionWith(url, { json: true })
        const reader = Promise.withResolvers<void>()
        const waiting = Promise.withResolvers<void>()
        const screen = {
          ...session.screen,
          drained: () => {
            waiting.resolve()
            return reader.promise
          },
        }
        const following = follow({ ...session, screen }, { filters: [], after: "0", count: 50 })
        await waiting.promise
        assert.equal(written.out, '{"id":1}\n')
        reader.resolve()
        await following
        assert.equal(written.out.trim().split("\n").length, 50)
      },
    ))

  it("prints its position if a reconnection is refused", () =>
    withServer(
      (_, answer, nth) => {
        if (nth > 1) return json(answer, 401, { code: "svc.unauthorized", detail: "expired" })
        answer.writeHead(200, { "content-type": "text/event-stream" })
        answer.write('id: 7\nevent: e\ndata: {"id":7}\n\n', () => answer.destroy())
      },
      async ({ url }) => {
        const { session, written } = sessionWith(url, { json: true })
        const work = follow(session, { filters: [], after: "0", count: 0 }, { first: 1, max: 2 })
        assert.equal((await endingOf(work)).ending, "forbidden")
        assert.equal(written.err, "To continue from here: almanac events follow --after 7\n")
      },
    ))

  it("prints no position that the server no longer has", () =>
    withServer(
      (_, answer, nth) => {
        if (nth > 1) return json(answer, 400, { detail: "There is no event 7" })
        answer.writeHead(200, { "content-type": "text/event-stream" })
        answer.write('id: 7\nevent: e\ndata: {"id":7}\n\n', () => answer.destroy())
      },
      async ({ url }) => {
        const { session, written } = sessionWith(url, { json: true })
        const work = follow(session, { filters: [], after: "0", count: 0 }, { first: 1, max: 2 })
        assert.match((await endingOf(work)).message, /There is no event 7/)
        assert.equal(written.err, "")
      },
    ))

  it("waits for Retry-After and resumes after any server error", () =>
    withServer(
      (_, answer, nth) => {
        const [status, headers = {}] = refusals[nth - 1] ?? [200]
        if (status !== 200) return json(answer, status, { detail: `no ${nth}` }, headers)
        answer.writeHead(200, { "content-type": "text/event-stream" })
        answer.write('id: 7\nevent: e\ndata: {"id":7}\n\n')
      },
      async ({ url, heard }) => {
        const { session, written } = sessionWith(url, { json: true })
        const began_ms = performance.now()
        const following = { filters: [], after: "6", count: 1, retry_for_s: 60 }
        await follow(session, following, { first: 1, max: 2 })
        assert.equal(written.out, '{"id":7}\n')
        // The second response asks for one second, and the third for a date long past.
        assert.isAbove(performance.now() - began_ms, 1000)
        assert.equal(heard.length, 12)
        assert.match(
          written.err,
          /^500: no 1\n {2}reconnecting until it succeeds; .* was 6\.\n429: /,
        )
        assert.match(written.err, /Connected again\.\n$/)
      },
    ))

  it("gives up after --retry-for, before a wait that exceeds it", async () => {
    const given = (retry_for_s: number) => ({ filters: [], after: "3", count: 2, retry_for_s })
    await withServer(
      (_, answer) => answer.destroy(),
      async ({ url, heard }) => {
        const work = follow(sessionWith(url).session, given(1), { first: 100, max: 300 })
        assert.equal((await endingOf(work)).ending, "unreachable")
        assert.isAbove(heard.length, 2)
      },
    )
    await withServer(
      (_, answer) => json(answer, 429, { detail: "too many" }, { "retry-after": "100" }),
      async ({ url, heard }) => {
        const work = follow(sessionWith(url).session, given(60))
        const { ending, message } = await endingOf(work)
        assert.equal(ending, "refused")
        assert.match(message, /^429: too many/)
        assert.equal(heard.length, 1)
      },
    )
  })

  it("fails if the response is a page", () =>
    withServer(
      (_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<html>"),
      async ({ url, heard }) => {
        const work = follow(sessionWith(url).session, { filters: [], after: "0", count: 1 })
        assert.equal((await endingOf(work)).ending, "failed")
        assert.equal(heard.length, 1)
      },
    ))

  it("is not retried after a refusal", () =>
    withServer(
      (_, answer) => json(answer, 403, { code: "svc.forbidden", detail: "no" }),
      async ({ url, heard }) => {
        const work = follow(sessionWith(url).session, { filters: [], after: undefined, count: 0 })
        assert.equal((await endingOf(work)).ending, "forbidden")
        assert.equal(heard.length, 1)
      },
    ))
})
