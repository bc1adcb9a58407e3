import { spawn } from "node:child_process"
import { once } from "node:events"
import { describe, expect, it } from "vitest"
import {
  type BlobRow,
  type Cell,
  cellTable,
  type Goal,
  goalTable,
} from "../../bench/blob/figures.ts"
import { descendants, rested, usedSeconds } from "../../bench/blob/process.ts"

const row = (runs_per_s: number, more: Partial<BlobRow> = {}): BlobRow => ({
  runs: 10,
  runs_per_s,
  p50_ms: 1,
  p99_ms: 2,
  p999_ms: 3,
  client_busy: 0.5,
  cpu_us: 40,
  flushes: 0.5,
  syncs: undefined,
  ...more,
})

const cell = (of: Readonly<Record<string, ReadonlyArray<BlobRow>>>, clients = 32): Cell => ({
  operation: "put",
  size: "4 KiB",
  blob_bytes: 4096,
  clients,
  measured: {
    series: Object.entries(of).map(([name, rounds]) => ({ name, rounds: [...rounds] })),
    noise: [],
  },
})

const goal: Goal = {
  size: "4 KiB",
  clients: 32,
  ours: "almanac",
  against: "peer",
  ratio: 2,
  operation: "put",
}

const cellsOf = (table: string, line: number) =>
  (table.split("\n")[line] ?? "").split("|").map((text) => text.trim())

describe("a goal", () => {
  const verdictOf = (cells: ReadonlyArray<Cell>) => cellsOf(goalTable(cells, [goal]), 2).slice(2, 5)

  it("is reached by the median of the rounds' ratios, and not by a ratio of medians", () => {
    const cells = [
      cell({ almanac: [row(300), row(10), row(20)], peer: [row(100), row(5), row(1)] }),
    ]
    expect(verdictOf(cells)).toEqual(["at least 2", "3 (2..20)", "reached"])
  })

  it("is missed", () => {
    const cells = [cell({ almanac: [row(199)], peer: [row(100)] })]
    expect(verdictOf(cells)).toEqual(["at least 2", "1.99 (1.99..1.99)", "missed"])
  })

  it("is not measured without the peer, or with another number of clients", () => {
    const alone = [cell({ almanac: [row(300)] })]
    const other = [cell({ almanac: [row(300)], peer: [row(100)] }, 1)]
    for (const cells of [[], alone, other]) {
      expect(verdictOf(cells)).toEqual(["at least 2", "", "not measured"])
    }
  })

  it("of syncs takes the server's own count before the disk's", () => {
    const syncs = (more: Partial<BlobRow>) =>
      cellsOf(goalTable([cell({ almanac: [row(1, more)] }, 64)], []), 2).slice(1, 5)
    const what = "4 KiB put, 64 clients:"
    expect(syncs({ flushes: 0.2, syncs: 0.02 })).toEqual([
      `${what} fdatasync, by its own count per put`,
      "at most 0.05",
      "0.02",
      "reached",
    ])
    expect(syncs({ flushes: 0.2 })).toEqual([
      `${what} flushes of the disk per put`,
      "at most 0.05",
      "0.2",
      "missed",
    ])
  })
})

describe("a table", () => {
  it("has a row for each who took part, with medians", () => {
    const text = cellTable(
      cell({ almanac: [row(200), row(100, { cpu_us: 60 }), row(400)], peer: [row(50)] }),
    )
    expect(cellsOf(text, 2).slice(1, -1)).toEqual([
      "almanac",
      "200 (100..400)",
      "0.819",
      "1",
      "2",
      "3",
      "40",
      "0.5",
      "50%",
      "",
    ])
    expect(cellsOf(text, 3).slice(1, 4)).toEqual(["peer", "50 (50..50)", "0.205"])
    expect(cellsOf(text, 3).at(-2)).toBe("4 (4..4)")
  })
})

describe("a server's processes", () => {
  it("are all below it, with the time of each", async () => {
    // A shell that waits for a busy child shell, until both are killed.
    const child = spawn("sh", ["-c", "sh -c 'while :; do :; done' & wait"], { detached: true })
    const pid = child.pid ?? 0
    try {
      await expect.poll(() => descendants(pid).length).toBe(1)
      expect(descendants(process.pid)).toEqual(expect.arrayContaining([pid, ...descendants(pid)]))
      expect(descendants(process.pid)).not.toContain(process.pid)
      await expect
        .poll(() => usedSeconds(descendants(pid)), { timeout: 10_000 })
        .toBeGreaterThan(0.02)
      expect(usedSeconds([pid])).toBeLessThan(0.02)
    } finally {
      const ended = once(child, "exit")
      process.kill(-pid, "SIGKILL")
      await ended
    }
    expect(usedSeconds([pid])).toBe(0)
  })

  it("are idle after they finish their pending work", async () => {
    const pause_ms = 500
    const work_us = 300_000
    const work = `while (process.cpuUsage(before).user < ${work_us});`
    const worked = `const before = process.cpuUsage(); ${work}`
    const later = `setTimeout(() => { ${worked} }, ${pause_ms}); setInterval(Boolean, 1000)`
    const program = `console.log("up"); ${later}`
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "ignore"] })
    const { pid = 0 } = child
    try {
      await once(child.stdout, "data")
      const before = usedSeconds([pid])
      // Much longer than the pause: on a busy machine the process may wait for a core.
      await rested(() => [pid], 8 * pause_ms)
      expect(usedSeconds([pid]) - before).toBeGreaterThan(0.25)
    } finally {
      const ended = once(child, "exit")
      child.kill("SIGKILL")
      await ended
    }
  })
})
