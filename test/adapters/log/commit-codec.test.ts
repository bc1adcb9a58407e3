import { assert, describe, it } from "@effect/vitest"
import { isReadable } from "#events/log.ts"
import { decode } from "#journal"

const commit = {
  v: 1,
  actor: "alice",
  at: "2026-11-20T12:00:00.000Z",
  events: [{ type: "Counted", by: 1 }],
  snapshot: { machine: 1, value: "open", context: { total: 1 } },
  commands: ["a"],
  prev: "0",
}

const text = (change: object = {}) => JSON.stringify({ ...commit, ...change })

/** The reason that a text, or bytes, in a stream are not a commit; undefined if they are one. */
const whyNot = (bytes: string | Uint8Array, stream = "a.b.c") => {
  const entry = decode(7, stream, Buffer.from(bytes))
  assert.deepEqual([entry.position, entry.stream], [7, stream])
  assert.match(entry.hash, /^[0-9a-f]{64}$/)
  return isReadable(entry) ? undefined : entry.unreadable
}

describe("a commit's bytes", () => {
  it("are a commit as a release writes it, with fields that a newer one adds", () => {
    assert.equal(whyNot(text()), undefined)
    assert.equal(
      whyNot(text({ snapshot: { ...commit.snapshot, machine: 99 }, mood: "new" })),
      undefined,
    )
    assert.equal(whyNot(text({ events: [] })), undefined)
  })

  const unreadable: ReadonlyArray<[string, string | Uint8Array, RegExp]> = [
    ["nothing", "", /empty/],
    ["no JSON", "{", /not JSON$/],
    [
      "not UTF-8",
      Buffer.concat([Buffer.from('{"v":1,"actor":"'), Buffer.of(0xff, 0x22, 0x7d)]),
      /UTF-8/,
    ],
    ["a list", "[]", /object/],
    ["a word", "null", /object/],
    ["another version", text({ v: 2 }), /version/],
    ["no version", text({ v: undefined }), /version/],
    [
      "its fields in another order",
      JSON.stringify({ mood: "x", ...commit }),
      /format of any release/,
    ],
    [
      "several lines",
      JSON.stringify(commit, null, 1).replace("{\n ", "{").replace('": 1', '":1'),
      /format of any release/,
    ],
    ["no events", text({ events: undefined }), /events/],
    ["events of no type", text({ events: [{}] }), /events/],
    ["no snapshot", text({ snapshot: undefined }), /snapshot/],
    ["a snapshot of no machine", text({ snapshot: { value: 1, context: {} } }), /snapshot/],
    ["commands that are none", text({ commands: [1] }), /commands/],
    ["no link", text({ prev: undefined }), /prev/],
    ["no time", text({ at: "yesterday" }), /at/],
    ["no actor", text({ actor: 1 }), /actor/],
    ["more than a commit may have", text({ mood: "x".repeat(600_000) }), /bytes/],
  ]
  it.each(unreadable)("that are %s say why they are no commit", (_, bytes, why) => {
    assert.match(whyNot(bytes) ?? "", why)
  })

  it.each(["a", "a.b", "a.b.c.d", "a.b.", "a.b.c d", "a.b.ü", ""])(
    "at the subject %j are no commit",
    (stream) => assert.match(whyNot(text(), stream) ?? "", /subject/),
  )
})
