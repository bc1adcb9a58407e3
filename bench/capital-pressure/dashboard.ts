/** Suite 9: the dashboard's API compared with FastAPI and uvicorn over the same SQLite file. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { applyLoad, load_tool } from "../gateway/load.ts"
import { freePort } from "../harness/free-port.ts"
import { machine } from "../harness/machine.ts"
import { interleave, orSkip } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"
import { type DashboardStage, openDashboard, pythonOf } from "./dashboard-file.ts"

const connections = 10
const start_ms_max = 30_000
const look_ms = 50

/** Daily, with a value for each of about 5,000 trading days. */
const daily = "/api/metrics/baa_spread/detail"

const pages = [
  { of: "The dashboard", path: "/api/dashboard" },
  { of: "A daily metric of 20 years", path: daily },
  { of: "Health", path: "/health" },
]

/** CACHE keeps each response until the file changes; QUICK is uvicorn on uvloop and httptools. */
const peers = [
  { name: "FastAPI", CACHE: "0", QUICK: "1" },
  { name: "FastAPI, cached responses", CACHE: "1", QUICK: "0" },
  { name: "the same on uvloop and httptools", CACHE: "1", QUICK: "1" },
]

type Peer = Omit<(typeof peers)[number], "name">

/** FastAPI in its own process. */
const startPeer = async ({ file, rules, today }: DashboardStage, { CACHE, QUICK }: Peer) => {
  const { python, environment } = pythonOf("fastapi")
  const port = await freePort()
  const server = spawn(python, [join(import.meta.dirname, "../peers/dashboard.py")], {
    env: {
      ...environment,
      FILE: file,
      RULES: rules,
      TODAY: String(today),
      PORT: String(port),
      CACHE,
      QUICK,
    },
    stdio: ["ignore", "ignore", "inherit"],
  })
  const ended = once(server, "exit")
  const stop = async () => {
    server.kill("SIGTERM")
    await ended
  }
  const url = `http://127.0.0.1:${port}`
  const end = performance.now() + start_ms_max
  while (performance.now() < end && server.exitCode === null) {
    const answer = await fetch(`${url}/health`).catch(() => undefined)
    if (answer?.ok) return { url, stop }
    await pause(look_ms)
  }
  await stop()
  throw new Error("the peer did not start")
}

interface Answered {
  readonly composite?: { readonly z: number }
  readonly composite_history?: { readonly length: number }
  readonly obs_count?: number
  readonly series?: ReadonlyArray<{ readonly z: number | null }>
}

/** The figures on which both must agree, so that no peer does less work. */
const essence = async (url: string, path: string) => {
  const answer = await fetch(url + path)
  const body: Answered = await answer.json()
  const { composite, composite_history, obs_count, series } = body
  const rounded = series?.at(-1)?.z?.toFixed(3)
  return JSON.stringify([
    composite?.z,
    composite_history?.length,
    obs_count,
    series?.length,
    rounded,
  ])
}

export const dashboard: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const stage = await openDashboard(folder)
  onEnd(stage.stop)
  const seats = [{ name: "almanac", url: stage.url }]
  for (const { name, ...variant } of peers) {
    const peer = await orSkip(name, () => startPeer(stage, variant))
    if (peer === undefined) continue
    onEnd(peer.stop)
    for (const { path } of pages) {
      const [ours, theirs] = [await essence(stage.url, path), await essence(peer.url, path)]
      if (ours !== theirs) throw new Error(`${path}: almanac ${ours}, ${name} ${theirs}`)
    }
    seats.push({ name, url: peer.url })
  }
  const effort = { in_flight: connections, seconds, runs_max: Number.MAX_SAFE_INTEGER }
  const all = []
  const sections: Array<string> = []
  for (const { of, path } of pages) {
    const contestants = seats.map(({ name, url }) => ({
      name,
      round: () => applyLoad({ url: url + path, token: "none", connections, seconds }, folder),
    }))
    const measured = await interleave(contestants, effort, rounds, folder)
    all.push(measured)
    const { length } = await (await fetch(stage.url + path)).text()
    const columns = { rate: "requests/s", per_run: 1, ours: "almanac", latency: true }
    sections.push(`${of}, ${length} bytes of ours:`, table(measured, columns))
  }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded; ${connections} ` +
    `connections of ${load_tool}; one process each, the same SQLite file of 20 generated years.`
  return [await machine(folder, all, []), spent, ...sections].join("\n\n")
}
