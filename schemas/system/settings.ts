/** Settings of what belongs to no service. Source: issue 10 §3, event subscribers. */
import { flag, integer, list, network, secret, setting, text } from "#schemas/setting.ts"

const from = "issue 10 §3; decision 0131"

/** A month: longer than anybody keeps a broken address. */
const disable_days_max = 30
/** Each may have 8 requests under way, and reads the events by itself. */
const webhooks_max = 1000

export const webhooks = {
  allowed_networks: setting(list(network), [], {
    meaning:
      "Networks that webhooks may reach though they are loopback, link-local or private: " +
      "none by default, so that no tenant can make this server call its own neighbours.",
    source: from,
  }),
  allow_http: setting(flag, false, {
    meaning: "Whether a webhook may have a plain `http` URL.",
    source: from,
  }),
  timeout_seconds: setting(integer(1, 60, "seconds"), 15, {
    meaning: "Seconds for one try, from its connection to the end of the answer.",
    source: "Standard Webhooks, deliverability",
  }),
  disable_after_days: setting(integer(1, disable_days_max, "days"), 3, {
    meaning: "Days in which every delivery failed, after which a webhook is disabled.",
    source: from,
  }),
  max_per_project: setting(integer(0, webhooks_max, "webhooks"), 10, {
    meaning: "Webhooks of one project; 0: none can be made.",
    source: from,
  }),
  key: setting(secret, "", {
    meaning:
      "Key that webhooks' secrets are made from, at least 32 bytes; empty: `webhook-key` in the " +
      "data folder. Processes that share a log need the same.",
    source: from,
  }),
  key_file: setting(text(), "", { meaning: "File that holds `key`.", source: from }),
}
