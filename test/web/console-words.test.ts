/** Computations of the console: charts, transitions, fields, alerts, texts. No browser. */
import { describe, expect, it } from "vitest"
import { charts } from "#server/charts.ts"
import { alertsOf, readinessOf } from "../../web/console/alerts.ts"
import type { Chart } from "../../web/console/api.ts"
import { layoutChart } from "../../web/console/chart-boxes.ts"
import { layeredLayout } from "../../web/console/chart-layout.ts"
import { activeOf, initialOf, transitionsTaken } from "../../web/console/chart-transitions.ts"
import { compareFields, flatten, isChanged } from "../../web/console/fields.ts"
import { poolsOf, progressOf } from "../../web/console/fleet.ts"
import { ago, bytes, duration, timestamp } from "../../web/console/format.ts"
import { periodsOf } from "../../web/console/job.ts"
import { slicesOf } from "../../web/console/ring-drawing.ts"
import { indexAt } from "../../web/console/time-travel.ts"
import { instant } from "../../web/console/timeline-parts.ts"
import { canned_now } from "../world/web/canned.ts"
import * as canned from "../world/web/console/canned.ts"

const chartOf = (id: string): Chart => {
  const found = charts().find((chart) => chart.id === id)
  if (found === undefined) throw new Error(`no chart ${id}`)
  return found
}

interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}
const overlap = (one: Area, other: Area) =>
  one.x < other.x + other.width - 0.01 &&
  other.x < one.x + one.width - 0.01 &&
  one.y < other.y + other.height - 0.01 &&
  other.y < one.y + one.height - 0.01

describe("the drawing of a chart", () => {
  for (const chart of charts()) {
    it(`has ${chart.id} whole, no box on another, and every way`, () => {
      const { boxes, links, width, height } = layoutChart(chart)
      expect(boxes.map(({ state }) => state.path).toSorted()).toEqual(
        chart.states.map(({ path }) => path).toSorted(),
      )
      for (const [index, one] of boxes.entries()) {
        expect(one.x).toBeGreaterThanOrEqual(-0.01)
        expect(one.x + one.width).toBeLessThanOrEqual(width + 0.01)
        expect(one.y + one.height).toBeLessThanOrEqual(height + 0.01)
        for (const other of boxes.slice(index + 1)) {
          const is_nested = other.state.path.startsWith(`${one.state.path}.`)
          if (!is_nested)
            expect([one.state.path, other.state.path, overlap(one, other)]).toContain(false)
          else expect(other.y).toBeGreaterThan(one.y)
        }
      }
      // Each transition to another state is drawn; a self-transition is listed in its state's box.
      const drawn = new Set([
        ...links.flatMap(({ transitions }) => transitions),
        ...boxes.flatMap(({ self_transitions }) => self_transitions),
      ])
      const missing = chart.transitions.filter((way) => !drawn.has(way))
      expect(missing.map(({ from, event, to }) => `${from} ${event} ${to}`)).toEqual([])
      for (const { points } of links) expect(points.length).toBeGreaterThanOrEqual(2)
    })
  }

  it("places what follows below, and turns what leads back", () => {
    const box = (id: string) => ({ id, width: 50, height: 20 })
    const link = (from: string, to: string) => ({
      id: `${from}${to}`,
      from,
      to,
      width: 40,
      height: 12,
    })
    const { boxes, links, texts } = layeredLayout(["a", "b", "c"].map(box), [
      link("a", "b"),
      link("b", "c"),
      link("c", "a"),
    ])
    const y = (id: string) => boxes.get(id)?.y ?? Number.NaN
    expect(y("a")).toBeLessThan(y("b"))
    expect(y("b")).toBeLessThan(y("c"))
    const back = links.get("ca") ?? []
    expect(back[0]?.y).toBeGreaterThan(back.at(-1)?.y ?? Number.NaN)
    // Its label is next to its start.
    expect(texts.get("ca")?.y).toBeGreaterThan(y("b"))
  })
})

const eventsOf = (taken: ReturnType<typeof transitionsTaken>) =>
  [...taken].map(({ from, event, to }) => `${from} ${event} ${to ?? "-"}`)

describe("the ways that were taken", () => {
  const job = chartOf("share-protection.job")
  const target = chartOf("share-protection.target")

  it("are those of the current states", () => {
    const taken = transitionsTaken(job, ["transferring"], ["JobFailed"], ["error"])
    expect(eventsOf(taken)).toEqual(["transferring JobFailed error"])
    expect(eventsOf(transitionsTaken(job, ["queued"], ["JobAssigned"], ["queued"]))).toEqual([
      "queued JobAssigned -",
    ])
    expect(eventsOf(transitionsTaken(job, ["available"], ["JobFailed"], ["available"]))).toEqual([])
  })

  it("are those of several events of one commit, one after the other", () => {
    const taken = transitionsTaken(job, ["releasing"], ["JobFailed", "JobRetried"], ["queued"])
    expect(eventsOf(taken)).toEqual(["releasing JobFailed error", "error JobRetried queued"])
  })

  it("are those of each region", () => {
    const before = activeOf({ present: { enrollment: "pending", format: "unknown" } })
    const now = activeOf({ present: { enrollment: "available", format: "settled" } })
    expect(eventsOf(transitionsTaken(target, before, ["TargetEnrolled"], now)).toSorted()).toEqual([
      "present.enrollment.pending TargetEnrolled present.enrollment.available",
      "present.format.unknown TargetEnrolled present.format.settled",
    ])
  })

  it("begin where the chart begins", () => {
    expect(initialOf(job)).toEqual(["absent"])
    const policy = chartOf("share-protection.policy")
    expect(initialOf(policy)).toEqual(["policy", "policy.none", "backup", "backup.idle"])
    expect(activeOf({ policy: "none", backup: "idle" })).toEqual(initialOf(policy))
  })
})

describe("the fields of a state", () => {
  it("are compared by their whole paths, and removed ones are listed", () => {
    const before = { a: 1, b: { c: [1, 2] }, gone: true }
    const now = { a: 1, b: { c: [1, 3, 4] }, empty: [], nothing: null }
    expect(compareFields(before, now).filter(isChanged)).toEqual([
      { path: "b.c[1]", before: "2", now: "3" },
      { path: "b.c[2]", before: undefined, now: "4" },
      { path: "empty", before: undefined, now: "[]" },
      { path: "nothing", before: undefined, now: "null" },
      { path: "gone", before: "true", now: undefined },
    ])
    expect(compareFields(now, now).filter(isChanged)).toEqual([])
    const filled = [{ path: "jobs[0].id", before: undefined, now: "1" }]
    expect(compareFields({ jobs: [] }, { jobs: [{ id: 1 }] }).filter(isChanged)).toEqual(filled)
    const emptied = [{ path: "jobs[0].id", before: "1", now: undefined }]
    expect(compareFields({ jobs: [{ id: 1 }] }, { jobs: [] }).filter(isChanged)).toEqual(emptied)
    expect([...flatten({})]).toEqual([])
    expect([...flatten("text")]).toEqual([["", '"text"']])
  })
})

describe("alerts", () => {
  const now = canned_now.getTime()
  it("are none of what was not answered, nor of what is well", () => {
    expect(alertsOf({}, now)).toEqual([])
    const well = { readiness: ["blob-storage ok", "plant-disease ok; uses the demo model"] }
    expect(alertsOf({ ...well, coverage: canned.coverage.slice(0, 2) }, now)).toEqual([])
    const settled = { rollouts: canned.rollouts.slice(0, 1), workers: canned.workers.slice(0, 2) }
    expect(alertsOf(settled, now)).toEqual([])
  })

  it("are the worst first; what is old is none", () => {
    const old = canned.jobs.filter(({ state }) => state === "error")
    expect(alertsOf({ failed_jobs: old }, now + 2 * 86_400_000)).toEqual([])
    const tones = alertsOf(
      { cluster: canned.cluster, failed_jobs: old, coverage: canned.coverage },
      now,
    ).map(({ tone }) => tone)
    expect(tones).toEqual(["bad", "bad", "bad", "bad", "waiting", "waiting"])
  })

  it("show how full the log is, above the server's warning level", () => {
    const log = { generation: 1, aggregates: 1, bytes: 1, limit_bytes: 1 }
    const tones = [null, 0.69, 0.7, 0.849, 0.85].map(
      (used_share) => alertsOf({ log: { ...log, used_share } }, now)[0]?.tone,
    )
    expect(tones).toEqual([undefined, undefined, "waiting", "waiting", "bad"])
  })

  it("read a line of /readyz", () => {
    expect(readinessOf("carrier-search ok; searches fail: no registry")).toEqual({
      name: "carrier-search",
      is_ready: true,
      status: "ok; searches fail: no registry",
    })
    expect(readinessOf("nats okay not").is_ready).toBe(false)
  })
})

describe("a fleet", () => {
  it("has its pools by domain, without what is retired", () => {
    const retired = canned.workers.slice(0, 1).map((one) => ({ ...one, state: "retired" }))
    const pools = poolsOf([...canned.workers, ...retired])
    expect(pools.map(({ workers }) => workers.length)).toEqual([4, 2])
  })

  it("is through a rollout by domains and by what is renewed in the present one", () => {
    const [, halted] = canned.rollouts
    if (halted === undefined) throw new Error("no rollout")
    expect(progressOf(halted, [])).toBe(0.5)
    const there = canned.workers.slice(0, 2).map((one) => ({ ...one, domain_id: canned.uuid(951) }))
    expect(progressOf(halted, there)).toBe(0.75)
    expect(progressOf({ ...halted, state: "succeeded" }, [])).toBe(1)
  })
})

describe("what is said", () => {
  it("of times, sizes and spans", () => {
    expect([
      duration(40),
      duration(3999),
      duration(60_000),
      duration(7_200_000),
      duration(3 * 86_400_000),
    ]).toEqual(["40 ms", "3 s", "1 min", "2 h", "3 days"])
    expect(ago("2026-11-20T22:29:30Z", canned_now.getTime())).toBe("30 s ago")
    expect(ago("2026-11-20T22:30:01Z", canned_now.getTime())).toBe("now")
    expect([bytes(0), bytes(1023), bytes(1536), bytes(5 * 2 ** 40)]).toEqual([
      "0 B",
      "1023 B",
      "1.5 KiB",
      "5.0 TiB",
    ])
    expect(timestamp("2026-11-20T22:30:01.5Z")).toBe("20 Nov 2026, 22:30:01.500 UTC")
  })

  it("of a time in a filter, in the API's own form", () => {
    expect(instant("2026-11-20")).toBe("2026-11-20T00:00:00Z")
    expect(instant("2026-11-20 14:00")).toBe("2026-11-20T14:00:00Z")
    expect(instant("2026-11-20T14:00:05.25Z")).toBe("2026-11-20T14:00:05.25Z")
    // The server reports what is wrong with it.
    expect(instant("yesterday")).toBe("yesterday")
  })

  it("of a job's way: what leaves it in its state is no step", () => {
    expect(periodsOf(canned.past).map(({ state }) => state)).toEqual([
      "queued",
      "provisioning_network",
      "provisioning_source",
      "error",
    ])
  })

  it("of a past at a position between two commits: the one before", () => {
    const past = { commits: canned.past } as Parameters<typeof indexAt>[0] // All it reads.
    expect([undefined, 1, 10, 16, 99].map((at) => indexAt(past, at))).toEqual([4, 0, 0, 2, 4])
  })

  it("of the ring: slices that fill it, for any parts", () => {
    const slices = slicesOf(canned.cluster.nodes)
    expect(slices[0]?.from).toBe(0)
    expect(slices.at(-1)?.to).toBeCloseTo(1)
    for (const [index, { from }] of slices.entries()) {
      if (index > 0) expect(from).toBe(slices[index - 1]?.to)
    }
  })
})
