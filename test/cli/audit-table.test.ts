/** The table of audit events. */
import { assert, describe, it } from "@effect/vitest"
import { eventTable, liveTable } from "#cli/audit/table.ts"
import { kept } from "./client/scripted.ts"

describe("the table", () => {
  const event = {
    position: 7,
    index: 0,
    at: "2026-11-20T01:00:00.000Z",
    service: "blob-storage",
    aggregate: "cluster",
    id: "main",
    subject: "main",
    type: "NodeJoined",
    actor: "admin",
    data: { node_id: "a" },
  }

  it("has a head and a line for each event, its columns in line", () => {
    const [head = "", line = ""] = eventTable([event], kept().screen).split("\n")
    assert.equal(head.indexOf("SUBJECT"), line.indexOf("main"))
    assert.match(line, /^7\.0 .* NodeJoined {2}main {5}admin {2}blob-storage .*\{"node_id":"a"\}$/)
  })

  it("lets no stored text write on the terminal", () => {
    const evil = { ...event, actor: "\u001b[2Jevil\n", data: { node_id: "\u009b2J" } }
    for (const { screen } of [kept(), kept(80)]) {
      assert.notMatch(liveTable(screen).row(evil), /\p{Cc}/u)
    }
  })

  it("fits the terminal, and is whole without one", () => {
    const long = { ...event, actor: "node:a".repeat(9), data: { node_id: "x".repeat(5000) } }
    for (const columns of [80, 120, 200]) {
      const { screen } = kept(columns)
      const { head, row } = liveTable(screen)
      const lines = [...eventTable([event, long], screen).split("\n"), head, row(long)]
      for (const line of lines) assert.isAtMost(line.length, columns, line)
    }
    assert.isAbove(eventTable([long], kept().screen).length, 5000)
  })
})
