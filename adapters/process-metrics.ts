/** Prometheus text of the process and of every Effect Metric in it. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** How finely the event loop's delay is sampled. */
const resolution_ms = 20
const ns_per_s = 1e9
const us_per_s = 1e6

const gauge = (name: string, help: string, value: number) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} gauge`,
  `${name} ${value}`,
]

/** Answers how to read the metrics; the event loop is watched for as long as the scope lives. */
export const processMetrics = Effect.gen(function* () {
  const delay = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution: resolution_ms })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable()),
  )
  const lines = () => {
    const { rss, heapUsed } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    const quantile = (share: number) => delay.percentile(share) / ns_per_s
    const text = [
      ...gauge("process_resident_memory_bytes", "Resident memory.", rss),
      ...gauge("nodejs_heap_used_bytes", "Heap in use.", heapUsed),
      "# HELP process_cpu_seconds_total User and system time.",
      "# TYPE process_cpu_seconds_total counter",
      `process_cpu_seconds_total ${(user + system) / us_per_s}`,
      ...gauge("process_uptime_seconds", "Seconds since the start.", process.uptime()),
      ...gauge("nodejs_eventloop_delay_p50_seconds", "Delay of the event loop.", quantile(50)),
      ...gauge("nodejs_eventloop_delay_p99_seconds", "Delay of the event loop.", quantile(99)),
    ].join("\n")
    // Each reading tells of the time since the one before.
    delay.reset()
    return text
  }
  return Effect.map(PrometheusMetrics.format(), (metrics) => `${lines()}\n${metrics}`)
})
