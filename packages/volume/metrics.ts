/** Prometheus text of a volume's metrics. */
import { Clock, Effect } from "effect"
import { plainText } from "#schemas/metric.ts"
import type { VolumeEngine } from "./engine.ts"

const ms_per_s = 1000

/** Renders the current metrics. Cannot fail, because all values are in memory. */
export const volumeMetrics = (engine: VolumeEngine) =>
  Effect.gen(function* () {
    const usage = yield* Effect.promise(engine.usage)
    const status = engine.status()
    const now_ms = yield* Clock.currentTimeMillis
    const unverified_ms = now_ms - (status.oldest_unverified_at ?? now_ms)
    return plainText("almanac_volume_", [
      ["gauge", "blobs", "Stored blobs.", usage.blob_count],
      ["gauge", "used_bytes", used, usage.used_bytes],
      ["gauge", "payload_bytes", "Size of the stored content in bytes.", usage.payload_bytes],
      [
        "gauge",
        "capacity_bytes",
        "Capacity in bytes, based on the disk's current space.",
        usage.capacity_bytes,
      ],
      ["gauge", "disk_free_bytes", "Bytes free on the disk.", status.disk?.free_bytes ?? 0],
      ["gauge", "disk_floor_bytes", floor, status.disk?.floor_bytes ?? 0],
      ["gauge", "read_only", "1 after a write or a sync failed.", usage.read_only ? 1 : 0],
      ["gauge", "log_files", "Log files.", status.log_files],
      ["gauge", "extent_files", "Extent files.", status.extent_files],
      ["gauge", "live_bytes", "Live bytes in all files.", status.live_bytes],
      ["gauge", "dead_bytes", "Dead bytes waiting for compaction.", status.dead_bytes],
      ["gauge", "oldest_unverified_seconds", unverified, Math.max(0, unverified_ms) / ms_per_s],
      ["gauge", "index_bytes", "Memory used by the index in bytes.", status.index_bytes],
      ["counter", "batches_total", batches, status.batches],
      ["counter", "records_total", "Records in these batches.", status.records],
      ["counter", "quarantined_total", quarantined, usage.quarantined],
      ["counter", "damaged_batches_total", damaged, status.damaged_batches],
    ])
  })

const unverified = "Seconds since the least recently verified file was verified."
const used = "Bytes on disk used by stored blobs: content, headers, padding and index."
const floor = "Bytes reserved on the disk (blob.free_floor_bytes)."
const batches = "Batches written to the volume's log since the start, each with one sync."
const quarantined = "Copies quarantined as corrupt or missing since the volume was created."
const damaged = "Damaged batches in the volume's log."
