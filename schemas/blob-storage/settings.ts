/** Settings of blob storage. Source: document 1 §3 and §8 with its decisions. */
import { Schema } from "effect"
import { address_chars_max, NodeAddress } from "#schemas/blob-storage/node.ts"
import { integer, type Kind, list, secret, setting, text, url } from "#schemas/setting.ts"

const kibibyte = 2 ** 10
const mebibyte = 2 ** 20
const gibibyte = 2 ** 30
const tebibyte = 2 ** 40
/** The largest exact integer in JSON. */
const bytes_max = Number.MAX_SAFE_INTEGER
/** A day: a node that is silent for longer is gone. */
const heartbeat_s_max = 86_400
/** A year: a node that is absent for longer never returns. */
const absence_s_max = 31_536_000
/** A day: a longer interval would leave missing copies undetected. */
const sweep_s_max = 86_400
/** Size of a volume's file: smaller ones are mostly overhead, larger ones are no faster. */
const segment_bytes_min = 8 * mebibyte
/** V8 strings have at most 2^29 - 24 characters, and a JSON body is one string. */
const json_body_bytes_max = 500 * mebibyte

/** Section `[blob]`. */
export const blob = {
  dir: setting(text(), "", {
    meaning: "Folder of the blob store; empty: `blobs` in the data folder.",
    source: "decisions, configuration",
  }),
  json_body_bytes_max: setting(integer(kibibyte, json_body_bytes_max, "bytes"), 64 * mebibyte, {
    meaning: "Maximum size of a JSON request body in bytes; a larger one gets status 413.",
    source: "decisions of document 1, limits not shown",
  }),
  stream_bytes_max: setting(integer(kibibyte, bytes_max, "bytes"), 5 * tebibyte, {
    meaning: "Maximum size of a blob stored by a stream, in bytes; a larger one gets status 413.",
    source: "decisions of document 1, limits not shown",
  }),
  segment_bytes: setting(integer(segment_bytes_min, gibibyte, "bytes"), 64 * mebibyte, {
    meaning: "Initial size of a volume file in bytes; under load, new files grow up to 1 GiB.",
    source: "decision 110",
  }),
  free_floor_bytes: setting(integer(0, bytes_max, "bytes"), 0, {
    meaning:
      "Free bytes on the disk reserved for the log, read models and tokens; a put that would " +
      "leave less gets status 429. 0: 1 GiB or 5% of the disk, the larger of the two, but at " +
      "most half of the space that was free at the first start.",
    source: "decisions of document 1, limits not shown",
  }),
  scrub_bytes_per_second: setting(integer(0, bytes_max, "bytes per second"), 16 * mebibyte, {
    meaning: "Rate at which stored bytes are verified in the background; 0: no verification.",
    source: "decisions of document 1, integrity",
  }),
}

/** Names and ids: one token of a bus subject. */
const token = text(/^[\w-]{1,64}$/, "letters, digits, _ and -, at most 64")
const token_or_empty = text(/^[\w-]{0,64}$/, "letters, digits, _ and -, at most 64")
/** The address that a node advertises, with the same rules as in the cluster. */
const address: Kind<string, string> = {
  ...text(),
  schema: Schema.Union([Schema.Literal(""), NodeAddress]),
  range: `host:port; IPv6 in brackets; at most ${address_chars_max} characters`,
}

/** Section `[cluster]`. */
export const cluster = {
  name: setting(token, "almanac", {
    meaning: "Name of the cluster; the same on every node.",
    source: "decisions, several blob nodes",
  }),
  node_id: setting(token_or_empty, "", {
    meaning:
      "ID of this node; empty: generated at the first start and kept in `node-id` in the data " +
      "folder.",
    source: "decisions, several blob nodes",
  }),
  advertise_address: setting(address, "", {
    meaning: "Address at which other nodes reach this node; empty: the address it listens on.",
    source: "document 1 §2 NodeInfo",
  }),
  join: setting(list(url("http", "https")), [], {
    meaning:
      "Addresses of members, for information only: the node joins through the log. It needs " +
      "`nats.url`, the log that all members share, and `secret` or `tls.client_ca`.",
    source: "decisions, several blob nodes",
  }),
  secret: setting(secret, "", {
    meaning:
      "Secret with which nodes authenticate to each other, at least 32 characters; the same on " +
      "every node.",
    source: "decisions of document 1, InternalService",
  }),
  secret_file: setting(text(), "", {
    meaning: "File that contains `secret`.",
    source: "decisions of document 1, InternalService",
  }),
  capacity_bytes: setting(integer(0, bytes_max, "bytes"), 0, {
    meaning:
      "Storage that this node contributes, in bytes, limited to the disk's space above " +
      "`blob.free_floor_bytes`; 0: 90% of the free space on the disk.",
    source: "decisions, several blob nodes",
  }),
  heartbeat_interval_seconds: setting(integer(1, heartbeat_s_max, "seconds"), 5, {
    meaning: "Interval between heartbeats of this node, in seconds.",
    source: "decisions of document 1, heartbeats",
  }),
  heartbeat_deadline_seconds: setting(integer(1, heartbeat_s_max, "seconds"), 15, {
    meaning:
      "Seconds without a heartbeat after which a node is offline; must exceed the heartbeat " +
      "interval.",
    source: "decisions of document 1, heartbeats",
  }),
  remove_after_seconds: setting(integer(1, absence_s_max, "seconds"), 3600, {
    meaning: "Seconds offline after which a node is removed; must exceed the heartbeat deadline.",
    source: "decisions of document 1, heartbeats",
  }),
  vnodes_per_node: setting(integer(1, 1024, "points"), 128, {
    meaning: "Number of points of each node on the ring; the same on every node.",
    source: "decisions of document 1, sync-ring",
  }),
  sweep_seconds: setting(integer(1, sweep_s_max, "seconds"), 600, {
    meaning:
      "Interval in seconds at which this node compares its copies with those of other nodes.",
    source: "decision 125",
  }),
  repair_bytes_per_second: setting(
    integer(64 * kibibyte, bytes_max, "bytes per second"),
    50 * mebibyte,
    {
      meaning: "Bandwidth of this node for repairing and moving copies.",
      source: "decision 125",
    },
  ),
}
