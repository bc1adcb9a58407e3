/** Settings that belong to no service. Source: issue 10 §3, event subscribers. */
import { flag, integer, list, network, secret, setting, text } from "#schemas/setting.ts"

const from = "issue 10 §3; decision 0131"

/** A month: longer than a broken address should be kept. */
const disable_days_max = 30
/** Each may have 8 concurrent requests and reads the events by itself. */
const webhooks_max = 1000

const from_events = "decisions, published events; decision 0172"

/** 8 GiB: about ten million events. Our own server's account has 20 GB. */
export const retention_bytes_default = 8 * 1024 ** 3
const retention_bytes_min = 256 * 1024 ** 2
const retention_bytes_max = 16 * 1024 ** 3
export const retention_days_default = 30
const retention_days_max = 3650

export const events = {
  retention_bytes: setting(
    integer(retention_bytes_min, retention_bytes_max, "bytes"),
    retention_bytes_default,
    {
      meaning:
        "Maximum size in bytes of the stream of published events. Older events are read from the " +
        "log, which is slower.",
      source: from_events,
    },
  ),
  retention_days: setting(integer(1, retention_days_max, "days"), retention_days_default, {
    meaning: "Number of days for which the stream keeps published events.",
    source: from_events,
  }),
}

export const webhooks = {
  allowed_networks: setting(list(network), [], {
    meaning:
      "Loopback, link-local or private networks that webhooks may reach; " +
      "none by default, so that tenants cannot make this server call internal services.",
    source: from,
  }),
  allow_http: setting(flag, false, {
    meaning: "Whether webhooks may have a plain `http` URL.",
    source: from,
  }),
  timeout_seconds: setting(integer(1, 60, "seconds"), 15, {
    meaning:
      "Timeout of one delivery attempt in seconds, from connecting to the end of the response.",
    source: "Standard Webhooks, deliverability",
  }),
  disable_after_days: setting(integer(1, disable_days_max, "days"), 3, {
    meaning: "Number of days with only failed deliveries after which a webhook is disabled.",
    source: from,
  }),
  max_per_project: setting(integer(0, webhooks_max, "webhooks"), 10, {
    meaning: "Maximum number of webhooks of a project; 0: none can be created.",
    source: from,
  }),
  key: setting(secret, "", {
    meaning:
      "Key from which webhook secrets are derived, at least 32 bytes; empty: `webhook-key` in " +
      "the data folder. Processes that share a log need the same key.",
    source: from,
  }),
  key_file: setting(text(), "", { meaning: "File that contains `key`.", source: from }),
}
