/** The client's handling of responses that fail, are late, are repeated, or never arrive. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { listBlobs } from "#cli/client/blob-storage/blob.ts"
import { readings } from "#cli/client/capital-pressure/reading.ts"
import { endingOf as endingOfStatus, exit_codes } from "#cli/client/exit-code.ts"
import type { Operation } from "#cli/client/operation.ts"
import { runOperation } from "#cli/client/run.ts"
import { watchJob } from "#cli/client/share-protection/watch.ts"
import { readModels } from "#cli/client/system/audit.ts"
import { endingOf, json, type Script, scripted, sessionWith, withServer } from "./scripted.ts"

const create: Operation = {
  command: "create",
  method: "POST",
  path: "/v1/policies",
  what: "",
  body: [],
}
const list: Operation = {
  command: "list",
  method: "GET",
  path: "/v1/jobs",
  what: "",
  items: "jobs",
  is_paged: true,
  columns: ["id"],
}
const nothing = { arguments: {}, fields: {}, limit: 0, wait: false }

describe("a request", () => {
  it("is retried after 503 and 504 only, with one key", () =>
    withServer(
      (_, answer, nth) => json(answer, [503, 504, 201][nth - 1] ?? 500, { id: "p1" }),
      async ({ url, heard }) => {
        const { session, written } = sessionWith(url, { json: true })
        await runOperation(session, create, { ...nothing, body: { name: "x" } })
        assert.deepEqual(JSON.parse(written.out), { id: "p1" })
        const keys = heard.map(({ headers }) => headers["idempotency-key"])
        assert.equal(keys.length, 3)
        assert.equal(new Set(keys).size, 1)
        assert.match(keys[0]?.toString() ?? "", /^[0-9a-f-]{36}$/)
        assert.deepEqual(
          new Set(heard.map(({ body }) => body.toString())),
          new Set(['{"name":"x"}']),
        )
      },
    ))

  it("has a new key for each request, and none for GET", () =>
    withServer(
      (_, answer) => json(answer, 200, { jobs: [], id: "p1" }),
      async ({ url, heard }) => {
        const { session } = sessionWith(url, { json: true })
        await runOperation(session, create, nothing)
        await runOperation(session, create, nothing)
        await runOperation(session, list, nothing)
        const keys = heard.map(({ headers }) => headers["idempotency-key"])
        assert.equal(new Set(keys).size, 3)
        assert.isUndefined(keys[2])
      },
    ))

  it.each([400, 401, 403, 404, 409, 412, 422, 429, 500])("is sent once where it is %i", (status) =>
    withServer(
      (_, answer) =>
        json(answer, status, { code: "svc.x", title: "X", detail: "It is so.\u001b[2J" }),
      async ({ url, heard }) => {
        const { ending, message } = await endingOf(
          runOperation(sessionWith(url).session, create, nothing),
        )
        assert.equal(heard.length, 1)
        assert.equal(ending, endingOfStatus(status))
        assert.match(message, new RegExp(`^${status} svc\\.x: It is so\\.\\?\\[2J`))
        if (status === 401) assert.match(message, /next: sign in$/)
      },
    ),
  )

  it("reports the reason in every service's envelope", async () => {
    const envelopes = [
      [
        { code: "NOT_FOUND", message: "not found", detail: "", request_id: "r" },
        /NOT_FOUND: not f/,
      ],
      [{ detail: "No such metric." }, /404: No such metric\./],
      [{ error: "No such carrier." }, /404: No such carrier\./],
    ] as const
    for (const [body, output] of envelopes) {
      await withServer(
        (_, answer) => json(answer, 404, body),
        async ({ url }) => {
          const work = runOperation(sessionWith(url).session, list, nothing)
          assert.match((await endingOf(work)).message, output)
        },
      )
    }
  })

  it("gives advice after a 404 that fits the command group", () =>
    withServer(
      (_, answer) => json(answer, 404, { detail: "Unknown metric: nope" }),
      async ({ url }) => {
        const history = readings.operations.find(({ command: verb }) => verb === "history")
        assert(history !== undefined)
        const input = { ...nothing, arguments: { metric_id: "nope" } }
        const { message } = await endingOf(runOperation(sessionWith(url).session, history, input))
        const next = "list the metrics: almanac readings sources"
        assert.equal(message, `404: Unknown metric: nope\n  next: ${next}`)
      },
    ))

  it("ends as unreachable if nothing listens or the response is cut off", async () => {
    const { url, close } = await scripted(() => undefined)
    await close()
    const refused = await endingOf(runOperation(sessionWith(url).session, list, nothing))
    assert.equal(refused.ending, "unreachable")
    assert.match(refused.message, /connection refused\n {2}next: start it$/)
    await withServer(
      (_, answer) => {
        answer.writeHead(200, { "content-length": "100" }).write("{")
        setImmediate(() => answer.destroy())
      },
      async ({ url }) => {
        const cut = await endingOf(runOperation(sessionWith(url).session, list, nothing))
        assert.equal(cut.ending, "unreachable")
      },
    )
  })

  it("does not follow redirections", () =>
    withServer(
      (_, answer) => answer.writeHead(308, { location: "https://other/v1" }).end(),
      async ({ url }) => {
        const { ending, message } = await endingOf(
          runOperation(sessionWith(url).session, create, nothing),
        )
        assert.equal(ending, "refused")
        assert.match(message, /308.*https:\/\/other\/v1/s)
      },
    ))

  it.each(["", ".", ".."])("has no '%s' for an id: its path would be another's", (id) =>
    withServer(
      (_, answer) => json(answer, 200, {}),
      async ({ url, heard }) => {
        const { session } = sessionWith(url)
        const remove = { ...create, method: "DELETE", path: "/v1/targets/{id}" } as const
        const work = runOperation(session, remove, { ...nothing, arguments: { id } })
        assert.equal((await endingOf(work)).ending, "usage")
        assert.equal((await endingOf(watchJob(session, id, false))).ending, "usage")
        assert.equal(heard.length, 0)
      },
    ),
  )

  it("of a long operation returns the last line of its response", () =>
    withServer(
      ({ headers }, answer, nth) => {
        if (headers.accept !== "application/x-ndjson") return json(answer, 406, {})
        answer.writeHead(202, { "content-type": "application/x-ndjson" })
        answer.write('{"name":"a","seconds":1}\n')
        const good = '{"name":"a","position":7}\n'
        return answer.end(nth === 1 ? good : '{"error":{"code":"svc.x","detail":"No log."}}\n')
      },
      async ({ url }) => {
        const rebuild = readModels.operations.find(({ command: verb }) => verb === "rebuild")
        assert(rebuild !== undefined)
        const { session, written } = sessionWith(url, { json: true })
        const body = { ...nothing, arguments: { name: "a" } }
        await runOperation(session, rebuild, body)
        assert.deepEqual(JSON.parse(written.out), { name: "a", position: 7 })
        const { ending, message } = await endingOf(runOperation(session, rebuild, body))
        assert.equal(ending, "failed")
        assert.match(message, /No log\./)
      },
    ))

  it("reports a response that is too long", () =>
    withServer(
      (_, answer) => {
        const part = Buffer.alloc(2 ** 24, " ")
        for (let i = 0; i < 5; i++) answer.write(part)
        answer.end()
      },
      async ({ url }) => {
        const { ending, message } = await endingOf(
          runOperation(sessionWith(url).session, list, nothing),
        )
        assert.equal(ending, "failed")
        assert.match(message, /longer than/)
      },
    ))

  it("ends as interrupted during the wait before a retry", () =>
    withServer(
      (_, answer) => json(answer, 503, {}, { "retry-after": "30" }),
      async ({ url, heard }) => {
        const { session, stop } = sessionWith(url)
        const work = endingOf(runOperation(session, list, nothing))
        while (heard.length === 0) await new Promise(setImmediate)
        stop()
        assert.equal((await work).ending, "interrupted")
      },
    ))
})

/** A blob id as in responses. */
const blobId = (n: number) =>
  Buffer.from(n.toString(16).padStart(32, "0"), "hex").toString("base64")

describe("a list", () => {
  const pages: Script = ({ path }, answer) => {
    const query = new URL(path, "http://x").searchParams
    const from = Number(query.get("marker") ?? 0)
    const limit = Number(query.get("limit"))
    const count = Math.min(limit, 2_500 - from)
    const jobs = Array.from({ length: count }, (_, i) => ({ id: `${from + i + 1}` }))
    const next_marker = from + count < 2_500 ? `${from + count}` : null
    json(answer, 200, { jobs, pagination: { limit, count, next_marker } })
  }

  it("is read page by page to its end", () =>
    withServer(pages, async ({ url, heard }) => {
      const { session, written } = sessionWith(url, { quiet: true })
      await runOperation(session, list, nothing)
      const ids = written.out.trim().split("\n").map(Number)
      assert.deepEqual(
        ids,
        Array.from({ length: 2_500 }, (_, i) => i + 1),
      )
      assert.equal(heard.length, 3)
      assert.equal(written.err, "")
    }))

  it("ends at its limit and reports that there are more items", () =>
    withServer(pages, async ({ url, heard }) => {
      const { session, written } = sessionWith(url, { json: true })
      await runOperation(session, list, { ...nothing, limit: 1_001 })
      assert.equal(JSON.parse(written.out).length, 1_001)
      assert.deepEqual(
        heard.map(({ path }) => path),
        ["/v1/jobs?limit=1000", "/v1/jobs?limit=1&marker=1000"],
      )
      assert.match(written.err, /--limit 0/)
    }))

  it("is read if the server allows only smaller pages", () =>
    withServer(
      (request, answer, nth) => {
        const { pathname, searchParams } = new URL(request.path, "http://x")
        const limit = Number(searchParams.get("limit") ?? 400)
        if (limit > 500) return json(answer, 400, { code: "svc.validation_error", detail: "" })
        searchParams.set("limit", String(limit))
        pages({ ...request, path: `${pathname}?${searchParams}` }, answer, nth)
      },
      async ({ url, heard }) => {
        const { session, written } = sessionWith(url, { quiet: true })
        await runOperation(session, list, nothing)
        assert.equal(written.out.trim().split("\n").length, 2_500)
        // One refused request, and seven pages of the server's default size.
        assert.equal(heard.length, 8)
        await runOperation(session, list, { ...nothing, limit: 450 })
        assert.equal(heard.length, 9)
        heard.length = 0
        const more = sessionWith(url, { quiet: true })
        await runOperation(more.session, list, { ...nothing, limit: 600 })
        assert.equal(more.written.out.trim().split("\n").length, 600)
        assert.equal(more.written.err, "More results exist: --limit 0 shows all.\n")
        assert.deepEqual(
          heard.map(({ path }) => path),
          ["/v1/jobs?limit=600", "/v1/jobs", "/v1/jobs?marker=400"],
        )
      },
    ))

  it("reports other refusals", () =>
    withServer(
      (_, answer) => json(answer, 400, { code: "svc.validation_error", detail: "no such state" }),
      async ({ url }) => {
        const { message } = await endingOf(runOperation(sessionWith(url).session, list, nothing))
        assert.match(message, /no such state/)
      },
    ))

  it("of blobs goes out page by page too", () =>
    withServer(
      ({ path, body }, answer) => {
        const url = new URL(path, "http://x")
        if (url.pathname === "/v1/blobs/stat") {
          const lines = JSON.parse(body.toString()).map(
            (id: string) => `{"id":"${Buffer.from(id, "hex").toString("base64")}"}\n`,
          )
          return answer
            .writeHead(200, { "content-type": "application/x-ndjson" })
            .end(lines.join(""))
        }
        const from = Number(url.searchParams.get("cursor") ?? 0)
        const count = Math.min(Number(url.searchParams.get("limit")), 25_000 - from)
        const ids = Array.from({ length: count }, (_, i) => blobId(from + i))
        const next_cursor = `${from + count}`
        json(answer, 200, { ids, has_more: from + count < 25_000, next_cursor })
      },
      async ({ url, heard }) => {
        const { session, written } = sessionWith(url, { json: true })
        const out = session.screen.out
        const seen = new Set<number>()
        const screen = {
          ...session.screen,
          out: (text: string) => {
            seen.add(heard.length)
            out(text)
          },
        }
        const wanted = { prefix: undefined, scope: "node", labels: {}, limit: 0 } as const
        await listBlobs({ ...session, screen }, { ...wanted, is_long: false })
        assert.deepEqual([...seen], [1, 2, 3])
        assert.equal(JSON.parse(written.out).length, 25_000)
        heard.length = 0
        written.out = ""
        await listBlobs(session, { ...wanted, is_long: true, limit: 2_500 })
        assert.equal(JSON.parse(written.out).length, 2_500)
        assert.equal(heard.length, 4)
        assert.equal(written.err, "More blobs exist: --limit 0 shows all.\n")
      },
    ))

  it("is no longer than its limit, even if the server sends more", () =>
    withServer(
      (_, answer) => {
        const jobs = ["a", "b", "c"].map((id) => ({ id }))
        json(answer, 200, { jobs, pagination: { next_marker: "c" } })
      },
      async ({ url }) => {
        const { session, written } = sessionWith(url, { quiet: true })
        await runOperation(session, list, { ...nothing, limit: 4 })
        assert.equal(written.out, "a\nb\nc\na\n")
      },
    ))

  it("is printed page by page in the format of a whole list", () =>
    withServer(pages, async ({ url, heard }) => {
      const all = Array.from({ length: 2_500 }, (_, i) => ({ id: `${i + 1}` }))
      const { session, written } = sessionWith(url, { json: true })
      const out = session.screen.out
      const seen: Array<number> = []
      const screen = {
        ...session.screen,
        out: (text: string) => {
          if (seen.at(-1) !== heard.length) seen.push(heard.length)
          out(text)
        },
      }
      await runOperation({ ...session, screen }, list, nothing)
      assert.equal(written.out, `${JSON.stringify(all, null, 2)}\n`)
      // Pages are printed as they arrive, not at the end.
      assert.deepEqual(seen, [1, 2, 3])
      const table = sessionWith(url)
      await runOperation(table.session, list, nothing)
      assert.equal(table.written.out, `ID\n${all.map(({ id }) => `${id}\n`).join("")}`)
    }))

  it("is an array of items, for each name of the field", () =>
    withServer(
      (_, answer) => json(answer, 200, { items: [{ id: "a" }], pagination: { next_marker: null } }),
      async ({ url }) => {
        const { session, written } = sessionWith(url, { json: true })
        await runOperation(session, list, nothing)
        assert.deepEqual(JSON.parse(written.out), [{ id: "a" }])
      },
    ))
})

describe("the exit codes", () => {
  it("match the guide", () => {
    const guide = readFileSync(join(import.meta.dirname, "../../../docs/guide-client.md"), "utf8")
    const rows = [...guide.matchAll(/^\| (\d+) +\| (.+?) +\|$/gm)]
    const visible = rows.map(([, code, what]) => [Number(code), what])
    assert.deepEqual(
      visible,
      Object.values(exit_codes).map(([code, what]) => [code, what]),
    )
  })

  it("are distinct", () => {
    const codes = Object.values(exit_codes).map(([code]) => code)
    assert.equal(new Set(codes).size, codes.length)
  })
})
