/** What `almanac doctor` reads out of a server's metrics: its own figures, not ours. */
import { type Finding, fail, ok, some, spell, warn } from "#adapters/doctor/finding.ts"
import { samplesOf } from "#adapters/health/metric-samples.ts"
import { full_share, kept_s_min, lag_s_max } from "#schemas/health-limits.ts"
import { version } from "#server/program.ts"

/** Findings in the text of `/metrics`; none where this server has nothing of the kind. */
export type MetricLook = (text: string) => ReadonlyArray<Finding>

const lasting = (seconds: number) => spell(seconds * 1000)
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`

/** The samples of a metric by the value of their label, the largest first. */
const largest = (text: string, name: string, label: string) =>
  samplesOf(text, name)
    .map(({ labels, value }) => ({ who: labels[label] ?? "", value }))
    .toSorted((one, other) => other.value - one.value)

const publisher: MetricLook = (text) => {
  const [lag] = samplesOf(text, "almanac_publisher_lag_seconds")
  if (lag === undefined) {
    return [ok("publisher", "another process publishes: its metrics have the lag")]
  }
  const late = `the oldest commit that is not published is ${lasting(lag.value)} old`
  return lag.value > lag_s_max.publisher
    ? [warn("publisher", `${late}: /readyz and the log of this process say why.`)]
    : [ok("publisher", lag.value === 0 ? "every commit is published" : late)]
}

const webhookLag: MetricLook = (text) => {
  const all = largest(text, "almanac_webhook_lag_seconds", "webhook")
  const late = all.filter(({ value }) => value > lag_s_max.webhook)
  if (all.length === 0) return []
  if (late.length === 0) return [ok("webhook lag", `${all.length} active, none is late`)]
  const names = late.map(({ who, value }) => `${who} is ${lasting(value)} behind`)
  return [warn("webhook lag", `${some(names)}: almanac webhooks show ID says why.`)]
}

const subscribers: MetricLook = (text) => {
  const [count] = samplesOf(text, "almanac_subscribers")
  if (count === undefined) {
    return [
      warn(
        "subscribers",
        "The durable NATS consumers cannot be listed: does nats-server let the publisher ask " +
          "for them (deploy/nats/nats.conf)?",
      ),
    ]
  }
  const missed = largest(text, "almanac_subscriber_missed_events", "consumer")
  const lags = largest(text, "almanac_subscriber_lag_seconds", "consumer")
  const beyond = missed.filter(({ value }) => value > 0)
  const late = lags.filter(({ value }) => value > lag_s_max.subscriber)
  const found: Array<Finding> = []
  if (beyond.length > 0) {
    const names = beyond.map(({ who, value }) => `${who} missed up to ${value} events`)
    found.push(
      fail(
        "subscribers",
        `${some(names)}, which were discarded before it read them: have its owner read them by ` +
          "GET /v1/events (docs/guide-events.md).",
      ),
    )
  }
  if (late.length > 0) {
    const names = late.map(({ who, value }) => `${who} is ${lasting(value)} behind`)
    const why = "it misses events once they are older than events.retention_days"
    found.push(warn("subscribers", `${some(names)}: ${why}; inform its owner.`))
  }
  return found.length > 0
    ? found
    : [ok("subscribers", `${count.value} durable consumers, none is late`)]
}

const events: MetricLook = (text) => {
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
    const shown = `${stream}: ${gigabytes(bytes)}${share}, the oldest is ${lasting(kept_s)} old`
    return limit > 0 && bytes / limit > full_share && kept_s < kept_s_min
      ? warn("events", `${shown}: raise events.retention_bytes.`)
      : ok("events", shown)
  })
  const [mirror] = samplesOf(text, "almanac_mirror_lag_seconds")
  if (mirror === undefined || mirror.value <= lag_s_max.mirror) return found
  const late = `the mirror for NATS subscribers is ${lasting(mirror.value)} behind`
  return [...found, warn("events", `${late}: the log of the process that publishes says why.`)]
}

const diskFloor: MetricLook = (text) => {
  const [free] = samplesOf(text, "almanac_volume_disk_free_bytes")
  const [floor] = samplesOf(text, "almanac_volume_disk_floor_bytes")
  if (free === undefined || floor === undefined) return []
  const shown =
    `${gigabytes(free.value)} free where blobs are, and puts leave ` +
    `${gigabytes(floor.value)} (blob.free_floor_bytes)`
  if (free.value < floor.value)
    return [fail("disk floor", `${shown}: puts are refused; make room.`)]
  return [free.value < 2 * floor.value ? warn("disk floor", `${shown}.`) : ok("disk floor", shown)]
}

const release: MetricLook = (text) => {
  const [build] = samplesOf(text, "almanac_build_info")
  if (build === undefined) return []
  const { version: served = "", node = "" } = build.labels
  const shown = `the server is ${served} on Node ${node}`
  return served === version
    ? [ok("version", shown)]
    : [warn("version", `${shown}, and this command ${version}: use one release for both.`)]
}

/** By the names of their checks. */
export const metric_looks: Readonly<Record<string, MetricLook>> = {
  publisher,
  "webhook-lag": webhookLag,
  subscribers,
  events,
  "disk-floor": diskFloor,
  version: release,
}
