/** Prometheus text of the process and all its Effect metrics. */
import { readdir } from "node:fs/promises"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { declared_families, familyText, plainText } from "#schemas/metric.ts"

/** Sampling interval of the event loop's delay. */
const resolution_ms = 20
const ns_per_s = 1e9
const us_per_s = 1e6
const ms_per_s = 1000

/** Open files and sockets of this process; 0 if unknown. */
const openFiles = Effect.promise(() =>
  readdir("/proc/self/fd").then(
    ({ length }) => length,
    () => 0,
  ),
)

/** Initial zero values of counters. */
const zeroFamilies = (metrics: string) =>
  declared_families
    .filter(({ name }) => !metrics.includes(`# TYPE ${name} `))
    .map((family) => familyText(family, []))
    .join("")

/** Returns a reader of the metrics; samples the event loop until the scope closes. */
export const processMetrics = Effect.gen(function* () {
  const delay = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution: resolution_ms })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable()),
  )
  const started_s = performance.timeOrigin / ms_per_s
  const text = (open_files: number) => {
    const { rss, heapUsed, external } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    // The sampling timer's own interval is subtracted: the rest is delay.
    const quantile = (share: number) =>
      Math.max(0, delay.percentile(share) / ns_per_s - resolution_ms / ms_per_s)
    const of_process = plainText("process_", [
      ["gauge", "resident_memory_bytes", "Resident memory.", rss],
      [
        "counter",
        "cpu_seconds_total",
        "User and system CPU time in seconds.",
        (user + system) / us_per_s,
      ],
      ["gauge", "start_time_seconds", "Start of the process, in Unix time.", started_s],
      ["gauge", "uptime_seconds", "Seconds since the start of the process.", process.uptime()],
      ["gauge", "open_fds", "Open files and sockets.", open_files],
    ])
    const of_node = plainText("nodejs_", [
      ["gauge", "heap_used_bytes", "Used heap in bytes.", heapUsed],
      [
        "gauge",
        "external_memory_bytes",
        "Memory outside the heap in bytes, mostly request bodies.",
        external,
      ],
      [
        "gauge",
        "eventloop_delay_p50_seconds",
        "Median delay of the event loop in seconds.",
        quantile(50),
      ],
      [
        "gauge",
        "eventloop_delay_p99_seconds",
        "99th percentile of the event loop's delay in seconds.",
        quantile(99),
      ],
      [
        "gauge",
        "eventloop_delay_max_seconds",
        "Maximum delay of the event loop in seconds.",
        quantile(100),
      ],
    ])
    // Each reading covers the time since the previous one.
    delay.reset()
    return of_process + of_node
  }
  return Effect.zipWith(
    openFiles,
    PrometheusMetrics.format(),
    (open_files, metrics) => text(open_files) + metrics + zeroFamilies(metrics),
  )
})
