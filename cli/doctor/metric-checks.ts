/** Checks of `almanac doctor` on a server's metrics. */
import {
  type Finding,
  fail,
  formatDuration,
  listNames,
  ok,
  warn,
} from "#adapters/doctor/finding.ts"
import { samplesOf } from "#adapters/health/metric-samples.ts"
import { full_share, lag_s_max, retained_s_min } from "#schemas/health-limits.ts"
import { version } from "#server/program.ts"

/** Findings in the text of `/metrics`; none if the server lacks these metrics. */
export type MetricCheck = (text: string) => ReadonlyArray<Finding>

const durationText = (seconds: number) => formatDuration(seconds * 1000)
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`

/** The samples of a metric with their label's value, largest first. */
const largest = (text: string, name: string, label: string) =>
  samplesOf(text, name)
    .map(({ labels, value }) => ({ label: labels[label] ?? "", value }))
    .toSorted((one, other) => other.value - one.value)

const publisher: MetricCheck = (text) => {
  const [lag] = samplesOf(text, "almanac_publisher_lag_seconds")
  if (lag === undefined) {
    return [ok("publisher", "another process publishes and reports the lag")]
  }
  const late = `the oldest unpublished commit is ${durationText(lag.value)} old`
  return lag.value > lag_s_max.publisher
    ? [warn("publisher", `${late}: see /readyz and the log of this process for the reason.`)]
    : [ok("publisher", lag.value === 0 ? "every commit is published" : late)]
}

const webhookLag: MetricCheck = (text) => {
  const all = largest(text, "almanac_webhook_lag_seconds", "webhook")
  const late = all.filter(({ value }) => value > lag_s_max.webhook)
  if (all.length === 0) return []
  if (late.length === 0) return [ok("webhook lag", `${all.length} active, none late`)]
  const names = late.map(({ label, value }) => `${label} is ${durationText(value)} behind`)
  return [warn("webhook lag", `${listNames(names)}: almanac webhooks show ID shows the reason.`)]
}

const subscribers: MetricCheck = (text) => {
  const [count] = samplesOf(text, "almanac_subscribers")
  if (count === undefined) {
    return [
      warn(
        "subscribers",
        "The durable NATS consumers cannot be listed: check that nats-server permits it to the " +
          "publisher (deploy/nats/nats.conf).",
      ),
    ]
  }
  const missed = largest(text, "almanac_subscriber_missed_events", "consumer")
  const lags = largest(text, "almanac_subscriber_lag_seconds", "consumer")
  const beyond = missed.filter(({ value }) => value > 0)
  const late = lags.filter(({ value }) => value > lag_s_max.subscriber)
  const found: Array<Finding> = []
  if (beyond.length > 0) {
    const names = beyond.map(({ label, value }) => `${label} missed up to ${value} events`)
    found.push(
      fail(
        "subscribers",
        `${listNames(names)}, which were discarded before it read them: its owner can read them ` +
          "with GET /v1/events (docs/guide-events.md).",
      ),
    )
  }
  if (late.length > 0) {
    const names = late.map(({ label, value }) => `${label} is ${durationText(value)} behind`)
    const why = "it misses events that are older than events.retention_days"
    found.push(warn("subscribers", `${listNames(names)}: ${why}; inform its owner.`))
  }
  return found.length > 0
    ? found
    : [ok("subscribers", `${count.value} durable consumers, none late`)]
}

const events: MetricCheck = (text) => {
  const of = (name: string) =>
    new Map(
      samplesOf(text, `almanac_published_stream_${name}`).map(({ labels, value }) => [
        labels.stream ?? "",
        value,
      ]),
    )
  const [limits, oldest] = [of("limit_bytes"), of("oldest_seconds")]
  const found = [...of("bytes")].map(([stream, bytes]) => {
    const limit = limits.get(stream) ?? 0
    const kept_s = oldest.get(stream) ?? 0
    const share = limit === 0 ? "" : ` of ${gigabytes(limit)}`
    const line = `${stream}: ${gigabytes(bytes)}${share}, the oldest is ${durationText(kept_s)} old`
    return limit > 0 && bytes / limit > full_share && kept_s < retained_s_min
      ? warn("events", `${line}: raise events.retention_bytes.`)
      : ok("events", line)
  })
  const [mirror] = samplesOf(text, "almanac_mirror_lag_seconds")
  if (mirror === undefined || mirror.value <= lag_s_max.mirror) return found
  const late = `the mirror for NATS subscribers is ${durationText(mirror.value)} behind`
  return [
    ...found,
    warn("events", `${late}: see the log of the publishing process for the reason.`),
  ]
}

const diskFloor: MetricCheck = (text) => {
  const [free] = samplesOf(text, "almanac_volume_disk_free_bytes")
  const [floor] = samplesOf(text, "almanac_volume_disk_floor_bytes")
  if (free === undefined || floor === undefined) return []
  const line =
    `${gigabytes(free.value)} free on the disk of blobs; puts leave ` +
    `${gigabytes(floor.value)} free (blob.free_floor_bytes)`
  if (free.value < floor.value)
    return [fail("disk floor", `${line}: puts are rejected until space is freed.`)]
  return [free.value < 2 * floor.value ? warn("disk floor", `${line}.`) : ok("disk floor", line)]
}

const release: MetricCheck = (text) => {
  const [build] = samplesOf(text, "almanac_build_info")
  if (build === undefined) return []
  const { version: served = "", node = "" } = build.labels
  const line = `the server has version ${served} and runs on Node ${node}`
  return served === version
    ? [ok("version", line)]
    : [
        warn(
          "version",
          `${line}, but this command has version ${version}: use the same release for both.`,
        ),
      ]
}

/** Metric checks by name. */
export const metric_checks: Readonly<Record<string, MetricCheck>> = {
  publisher,
  "webhook-lag": webhookLag,
  subscribers,
  events,
  "disk-floor": diskFloor,
  version: release,
}
