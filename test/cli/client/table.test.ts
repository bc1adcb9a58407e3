/** Output for people: tables and pages that fit, progress on one line, and readable values. */
import { assert, describe, it } from "@effect/vitest"
import { blobFields } from "#cli/client/blob-storage/blob.ts"
import { formatBytes, formatDuration, formatValue, printable } from "#cli/client/format.ts"
import { fromJson, type Json, toJson, withMember } from "#cli/client/json.ts"
import { lineOf, progressOn, rateOf } from "#cli/client/progress.ts"
import { showItems } from "#cli/client/session.ts"
import { fieldList, presentColumns, table, truncated, widthOf } from "#cli/client/table.ts"
import { kept, sessionWith } from "./scripted.ts"

const items = [
  {
    id: "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77",
    name: "nightly",
    status: "available",
    stored_bytes: 1_536,
    created_at: "2026-11-22T17:18:09.123Z",
    reason: null,
  },
  {
    id: "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e78",
    name: `long ${"name ".repeat(12)}`,
    status: "error",
    stored_bytes: null,
    created_at: "2026-11-22T17:18:09Z",
    reason: "the bucket\u001b[31m cannot be reached",
  },
]
const names = ["id", "status", "name", "stored_bytes", "created_at", "reason"]
const drawn = (...[items, names, screen]: Parameters<typeof table>) => {
  const { head, rowsOf: of } = table(items, names, screen)
  return head + of(items)
}
const seeds = Array.from({ length: 200 }, (_, i) => i + 1)

/** A small generator that is deterministic in its seed. */
const random = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

describe("a table", () => {
  it("has a head, times to the second, bytes in units, and a dash for nothing", () => {
    const { screen } = kept(200)
    const [head = "", first = "", second = ""] = drawn(items, names, screen).split("\n")
    assert.match(head, /^ID +STATUS +NAME +STORED +CREATED +REASON$/)
    assert.match(first, /available +nightly +1\.5 KiB +2026-11-22 17:18:09Z +-$/)
    assert.match(second, / - {2}2026-11-22 17:18:09Z {2}the bucket\?\[31m cannot be reached$/)
    assert.equal(first.indexOf("2026"), second.indexOf("2026"))
  })

  it("is never wider than the terminal, and shows ids and times whole", () => {
    for (let columns = 37; columns <= 160; columns++) {
      const lines = drawn(items, names, kept(columns).screen).trimEnd().split("\n")
      for (const line of lines) assert.isAtMost(widthOf(line), columns, `${columns}: ${line}`)
      assert.include(lines[2], items[1]?.id)
      if (lines[0]?.includes("CREATED")) assert.include(lines[2], "2026-11-22 17:18:09Z")
    }
  })

  it.each(seeds)("of any content fits, by seed %i", (seed) => {
    const below = random(seed)
    const word = () => "界x é\n".repeat(5).slice(0, below(25))
    const columns = 20 + below(100)
    const fields = Array.from({ length: 1 + below(7) }, (_, i) => `f${i}`)
    const rows = Array.from({ length: below(5) }, () =>
      Object.fromEntries(fields.map((name) => [name, below(3) === 0 ? below(10_000) : word()])),
    )
    const lines = drawn(rows, fields, kept(columns).screen).trimEnd().split("\n")
    assert.equal(lines.length, rows.length + 1)
    for (const line of lines) assert.isAtMost(widthOf(line), columns)
  })

  it("is whole where no terminal is, in values as the answer has them", () => {
    const text = drawn(items, names, kept().screen)
    assert.match(text, /^ID +STATUS +NAME +STORED BYTES +CREATED AT +REASON\n/)
    assert.include(text, `${items[1]?.name}`)
    assert.match(text, / 1536 {2}2026-11-22T17:18:09\.123Z {2}-\n/)
    assert.notInclude(text, "\u001b")
  })

  it("colours states where colours are wanted", () => {
    assert.include(drawn(items, names, kept(120, 120, true).screen), "\u001b[32mavailable")
    assert.notInclude(drawn(items, names, kept(120, 120, false).screen), "\u001b[")
  })

  it("leaves out columns that this shape of the API does not have", () => {
    assert.deepEqual(presentColumns(["id", "bucket_name"], items), ["id"])
    assert.deepEqual(presentColumns(["id", "bucket_name"], []), ["id", "bucket_name"])
  })
})

describe("a list", () => {
  const shownWith = (fields: ReadonlyArray<string> | undefined, items: ReadonlyArray<Json>) => {
    const { session, written } = sessionWith("http://unused", { fields })
    showItems(session, items, ["id", "policy_id", "status"])
    return written.out
  }

  it("has each column that was asked for, so that scripts find theirs where it is", () => {
    const rows = [{ id: "a", status: "ready" }]
    assert.match(shownWith(["id", "policy_id", "status"], rows), /^a +- +ready$/m)
    assert.match(shownWith(undefined, rows), /^a +ready$/m)
  })

  it("may be very long", () => {
    const rows = Array.from({ length: 300_000 }, (_, i) => ({ id: `${i}` }))
    assert.equal(shownWith(undefined, rows).split("\n").length, rows.length + 2)
  })
})

describe("a page", () => {
  it("has a line for each field, members of objects by their path", () => {
    const text = fieldList(
      { id: "a", retention: { keep_last: 3 }, labels: {} },
      undefined,
      kept(80).screen,
    )
    assert.equal(text, "id                   a\nretention.keep_last  3\nlabels               -\n")
    const chosen = fieldList(
      { id: "a", retention: { keep_last: 3 } },
      ["retention.keep_last"],
      kept().screen,
    )
    assert.equal(chosen, "retention.keep_last  3\n")
  })
})

describe("progress", () => {
  const step = { label: "backup transferring", done: 512 * 2 ** 20, total: 2 ** 30 }

  it("is one line with bar, percent, bytes, rate and what remains", () => {
    const line = lineOf(step, 64 * 2 ** 20, 100)
    assert.equal(
      line,
      `backup transferring  [${"#".repeat(14)}${"-".repeat(14)}]   50%  512 MiB / 1.0 GiB  ` +
        "64.0 MiB/s  0:08 left",
    )
    assert.match(
      lineOf({ label: "a", done: 5 }, 1, 80),
      /^a {2}5 B {2}1\.0 B\/s$|^a {2}5 B {2}1 B\/s$/,
    )
    assert.match(
      lineOf({ label: "job queued", percent: 0 }, undefined, 80),
      /^job queued {2}\[-+\] {4}0%$/,
    )
  })

  it("fits any terminal", () => {
    for (let columns = 1; columns <= 120; columns++) {
      assert.isAtMost(widthOf(lineOf(step, 64 * 2 ** 20, columns)), columns)
    }
  })

  it("has the rate of the last seconds", () => {
    assert.isUndefined(rateOf([{ ms: 0, done: 5 }]))
    assert.equal(
      rateOf([
        { ms: 0, done: 5 },
        { ms: 500, done: 55 },
      ]),
      100,
    )
  })

  it("is drawn over itself on a terminal and taken away, at most ten times a second", () => {
    const { screen, written } = kept(80, 80)
    let ms = 0
    const progress = progressOn(screen, 0, () => ms)
    for (; ms < 1_000; ms += 10) progress.at({ label: "a", done: ms, total: 2_000 })
    progress.end()
    assert.equal(written.err.split("\r\u001b[K").length - 1, 11)
    assert.isTrue(written.err.endsWith("\r\u001b[K"))
    assert.notInclude(written.err, "\n")
  })

  it("is plain lines elsewhere: one for each step and each tenth", () => {
    const { screen, written } = kept()
    const progress = progressOn(screen, 0, () => 0)
    for (let done = 0; done <= 100; done++) progress.at({ label: "a", done, total: 100 })
    progress.at({ label: "b", percent: 3 })
    progress.end()
    assert.equal(written.err.split("\n").length - 1, 12)
    assert.notInclude(written.err, "\r")
  })

  it("says nothing of a transfer that is over at once", () => {
    const { screen, written } = kept()
    progressOn(screen, 2_000, () => 0).at({ label: "a", done: 1, total: 1 })
    assert.equal(written.err, "")
  })
})

describe("a value", () => {
  it("is shown as people read it", () => {
    assert.deepEqual([0, 1023, 1024, 1536, 1023.6 * 1024, 2 ** 40].map(formatBytes), [
      "0 B",
      "1023 B",
      "1.0 KiB",
      "1.5 KiB",
      "1024 KiB",
      "1.0 TiB",
    ])
    assert.deepEqual([0, 7.4, 60, 3_723].map(formatDuration), ["0:00", "0:07", "1:00", "1:02:03"])
    assert.deepEqual(
      [true, false, null, [], ["a", "b"], { a: 1, b: "c" }].map((one) => formatValue("", one)),
      ["yes", "no", "-", "-", "a, b", "a=1, b=c"],
    )
  })

  it("cannot write on the terminal", () => {
    assert.equal(printable("a\u001b]0;x\u0007\n\u202eb"), "a?]0;x???b")
    assert.equal(truncated("abc\u4e16\u754c", 5), "abc…")
  })
})

describe("JSON", () => {
  it("keeps integers that a number would round", () => {
    const text = '{"created_at":1795363185973123457,"size":6,"z":-1.5,"big":[9007199254740993]}'
    assert.equal(toJson(fromJson(text)), text)
    assert.equal(toJson(fromJson("1e400") === Number.POSITIVE_INFINITY ? null : 1), "null")
  })

  it("has 64-bit integers of a blob as numbers or as text, and shows them alike", () => {
    const meta = { size: 5, created_at: 1_795_407_833_216_362_607n }
    const values = { size: 5, created_at: "2026-11-23T04:23:53.216Z" }
    assert.deepInclude(blobFields("a", meta), values)
    const as_text = { size: "5", created_at: String(meta.created_at) }
    assert.deepInclude(blobFields("a", as_text), values)
  })

  it("takes members at a path", () => {
    const made = withMember(withMember({ a: { b: 1 } }, "a.c", 2), "d.e", [3])
    assert.deepEqual(made, { a: { b: 1, c: 2 }, d: { e: [3] } })
  })
})
