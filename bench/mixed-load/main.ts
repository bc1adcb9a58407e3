/**
 * The memory of a whole server under mixed load: starts one in a new folder, sends about 85
 * requests per second, and samples its memory and descriptors until a few minutes after the load.
 */
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { parseArgs } from "node:util"
import { usedSeconds } from "../blob/process.ts"
import { startGateway } from "../gateway/almanac-gateway.ts"
import { scratchFolder } from "../harness/disk.ts"
import { aligned } from "../harness/table.ts"
import { type Mix, mixOf } from "./requests.ts"

const help = `node bench/mixed-load/main.ts [--minutes N] [--idle-minutes N] [--rss-max MB]

Starts a server with all services and a fresh data folder, and sends it about 85 requests a second
for N minutes (5): blobs of 4 KiB and 4 MiB, lists, jobs, the dashboard, predictions, event streams
and aborted uploads. Prints its memory and its open descriptors each half minute, and once more
after some idle minutes (3). Fails on an error, on a descriptor that stays open, and above 500 MB
of resident memory. Needs Linux. Not a part of \`npm run bench\`.

  node bench/mixed-load/main.ts --minutes 45 --idle-minutes 10`

const minute_ms = 60_000
const reading_ms = 30_000
/** A request that is this late, or comes while this many are pending, is skipped. */
const late_ms_max = 200
const waiting_max = 64
/** For all services together: timers and the bus open and close this many. */
const descriptors_slack = 4
const printed_errors_max = 10

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    "idle-minutes": { type: "string", default: "3" },
    "rss-max": { type: "string", default: "500" },
    help: { type: "boolean", default: false },
  },
})

const number = (name: string, text: string) => {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0, not ${text}`)
  return value
}

/** Resident memory of a process, current and peak, in MB. */
const residentOf = (pid: number) => {
  const text = readFileSync(`/proc/${pid}/status`, "utf8")
  const of = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(text)?.[1])
  return { rss_mb: (of("VmRSS") * 1024) / 1e6, peak_mb: (of("VmHWM") * 1024) / 1e6 }
}

/**
 * Open descriptors of a process, without its volume's segments, whose number grows with the data.
 */
const descriptorsOf = (pid: number) => {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter((name) => {
    try {
      return !readlinkSync(`${folder}/${name}`).endsWith(".seg")
    } catch {
      // Closed in the meantime.
      return false
    }
  }).length
}

const metric = (text: string, name: string) =>
  Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1]) / 1e6

const readingOf = async (at: string, server: { url: string; token: string; pid: number }) => {
  const { rss_mb, peak_mb } = residentOf(server.pid)
  const headers = { authorization: `Bearer ${server.token}` }
  const text = await (await fetch(new URL("/metrics", server.url), { headers })).text()
  return {
    at,
    rss_mb,
    peak_mb,
    heap_mb: metric(text, "nodejs_heap_used_bytes"),
    external_mb: metric(text, "nodejs_external_memory_bytes"),
    descriptors: descriptorsOf(server.pid),
    cpu_s: usedSeconds([server.pid]),
  }
}

type Reading = Awaited<ReturnType<typeof readingOf>>

const table = (readings: ReadonlyArray<Reading>) => {
  const heads = ["at", "RSS", "peak RSS", "heap used", "external", "descriptors", "processor s"]
  const rows = readings.map((reading) => [
    reading.at,
    ...[reading.rss_mb, reading.peak_mb, reading.heap_mb, reading.external_mb].map((mb) =>
      mb.toFixed(0),
    ),
    String(reading.descriptors),
    reading.cpu_s.toFixed(1),
  ])
  return aligned([heads, ...rows])
}

/** Sends each kind at its own rate until `end`, without waiting for earlier responses. */
const load = async ({ kinds }: Mix, end: number, onError: (text: string) => void) => {
  const waiting = new Set<Promise<void>>()
  let count = 0
  const paced = kinds.map(async ([name, per_s, send]) => {
    let due = performance.now()
    while (due < end) {
      await pause(Math.max(0, due - performance.now()))
      // A machine that stalled does not send the missed requests in a burst.
      due = Math.max(due + 1000 / per_s, performance.now() - late_ms_max)
      if (waiting.size >= waiting_max) continue
      count++
      const sent = send().then(
        () => undefined,
        (cause) => onError(`${name}: ${String(cause)}`),
      )
      waiting.add(sent)
      void sent.finally(() => waiting.delete(sent))
    }
  })
  await Promise.all(paced)
  await Promise.all(waiting)
  return count
}

const measure = async (folder: string, load_minutes: number, idle_minutes: number) => {
  const server = await startGateway(folder)
  try {
    const mix = await mixOf(server)
    await mix.once()
    const readings = [await readingOf("start", server)]
    console.log(table(readings))
    const read = async (at: string) => {
      const reading = await readingOf(at, server)
      readings.push(reading)
      console.log(table([reading]).split("\n").at(-1))
    }
    const errors: Array<string> = []
    const onError = (text: string) => {
      if (errors.push(text) <= printed_errors_max) console.error(text)
    }
    const began = performance.now()
    const end = began + load_minutes * minute_ms
    const loading = load(mix, end, onError)
    for (let at = began + reading_ms; at < end; at += reading_ms) {
      await pause(Math.max(0, at - performance.now()))
      await read(`${((at - began) / minute_ms).toFixed(1)} min`)
    }
    const count = await loading
    const per_s = (1000 * count) / (performance.now() - began)
    mix.close()
    await read("load's end")
    await pause(idle_minutes * minute_ms)
    await read(`${idle_minutes} min later`)
    return { readings, errors, count, per_s }
  } finally {
    await server.stop()
  }
}

const main = async () => {
  const minutes = number("minutes", values.minutes)
  const idle = number("idle-minutes", values["idle-minutes"])
  const rss_max = number("rss-max", values["rss-max"])
  const folder = await scratchFolder()
  const run = measure(folder, minutes, idle)
  const { readings, errors, count, per_s } = await run.finally(() => {
    rmSync(folder, { recursive: true, force: true })
  })
  const [first, last] = [readings[0], readings.at(-1)]
  const peak = last?.peak_mb ?? Number.NaN
  const leaked = (last?.descriptors ?? 0) - (first?.descriptors ?? 0)
  console.log(`\n${table(readings)}\n`)
  console.log(
    `${count} requests, ${per_s.toFixed(1)} a second, ${errors.length} errors; peak RSS ` +
      `${peak.toFixed(0)} MB; ${leaked} more descriptors than before the load`,
  )
  const is_good = errors.length === 0 && leaked <= descriptors_slack && peak <= rss_max
  process.exitCode = is_good ? 0 : 1
}

if (values.help) console.log(help)
else await main()
