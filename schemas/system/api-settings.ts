/** Settings of the listener and of requests. Source: document 2 §8 and DECISIONS. */
import { choice, flag, integer, list, network, setting, text } from "#schemas/setting.ts"

/** An hour: a longer request is a mistake. */
const hour_s = 3600
/** Ten minutes: probes of `/readyz` are more frequent. */
const drain_s_max = 600
/** A million per second exceeds the capacity of a process: effectively unlimited. */
const requests_per_second_max = 1_000_000
/** The capacity of one Node process with hundreds of GB of memory. */
const connections_max = 1_000_000
/** Each takes 8 MiB: more would exceed the memory of a process. */
const streams_max = 10_000
/** The speed of a loopback interface: a higher minimum would reject every client. */
const bytes_per_second_max = 2 ** 30

/** Document 2 §8: the maximum page size. */
const page_limit_max = 1000

export const api = {
  bind_host: setting(text(/^[\w.:%-]{1,253}$/, "host name or IP address"), "0.0.0.0", {
    meaning: "Address to listen on.",
    source: "document 2 §8",
  }),
  bind_port: setting(integer(0, 65_535), 9797, {
    meaning: "Port to listen on; 0 picks a free one.",
    source: "document 2 §8",
  }),
  shape: setting(choice("A", "B"), "A", {
    meaning: "Shape of document 2's API.",
    source: "decisions of document 2, which shape",
  }),
  noauth: setting(flag, false, {
    meaning:
      "Whether authentication is disabled: every caller is then the development tenant with all " +
      "roles.",
    source: "document 2 §5",
  }),
  noauth_unsafe: setting(flag, false, {
    meaning: "Whether `noauth` is allowed on an address that other machines can reach.",
    source: "decisions, safety of defaults",
  }),
  default_limit: setting(integer(1, page_limit_max, "items"), 100, {
    meaning: "Default number of items on a page.",
    source: "document 2 §8",
  }),
  max_limit: setting(integer(1, page_limit_max, "items"), page_limit_max, {
    meaning: "Maximum number of items on a page.",
    source: "document 2 §8",
  }),
  max_connections: setting(integer(1, connections_max, "connections"), 10_000, {
    meaning:
      "Maximum number of open client connections, at most three quarters of the files that " +
      "the process may open. Connections above it can only read `/livez`, `/readyz` and " +
      "`/metrics`.",
    source: "decision 0154",
  }),
  max_connections_per_address: setting(integer(1, connections_max, "connections"), 1000, {
    meaning:
      "Maximum number of open connections from one address or one IPv6 /64 network. Some " +
      "connections above it get status 503, and further ones are closed.",
    source: "decision 0186",
  }),
  unlimited_addresses: setting(list(network), ["127.0.0.0/8", "::1/128"], {
    meaning:
      "Networks exempt from `api.max_connections_per_address`, for which some of " +
      "`api.max_connections` are reserved: list your reverse proxies here, in addition to " +
      "loopback.",
    source: "decision 0186",
  }),
  max_event_streams: setting(integer(1, streams_max, "streams"), 256, {
    meaning:
      "Maximum number of open `GET /v1/events` streams, one sixteenth of them reserved for " +
      "admins; further ones get status 503. Each stream buffers up to 8 MiB for a slow reader.",
    source: "decision 0179",
  }),
  max_event_streams_per_caller: setting(integer(1, streams_max, "streams"), 32, {
    meaning:
      "Maximum number of open `GET /v1/events` streams of one caller; all callers of a project " +
      "together get half of all streams. Further ones get status 429.",
    source: "decision 0179",
  }),
  request_timeout_seconds: setting(integer(1, hour_s, "seconds"), 60, {
    meaning:
      "Timeout in seconds of a request once its body is complete, and of an idle stream; then " +
      "status 504.",
    source: "decisions of document 1, limits not shown",
    reloadable: true,
  }),
  body_bytes_per_second_min: setting(integer(0, bytes_per_second_max, "bytes"), 16_384, {
    meaning:
      "Minimum rate of a request body, averaged after `api.request_timeout_seconds`: a slower " +
      "one gets status 408, and the connection closes. A body that is not a stream may take at " +
      "most ten times `api.request_timeout_seconds`; 0: no minimum rate.",
    source: "decision 0186",
    reloadable: true,
  }),
  drain_seconds: setting(integer(0, drain_s_max, "seconds"), 0, {
    meaning:
      "Seconds for which a stopping process still serves requests, while `/readyz` returns 503, " +
      "so that load balancers send requests elsewhere.",
    source: "decision 0140",
    reloadable: true,
  }),
  rate_limit_per_second: setting(integer(0, requests_per_second_max, "requests"), 0, {
    meaning: "Maximum requests per second of one caller; further ones get status 429. 0: no limit.",
    source: "decisions of document 1, limits not shown",
    reloadable: true,
  }),
  rate_limit_burst: setting(integer(0, requests_per_second_max, "requests"), 0, {
    meaning: "Maximum burst of requests; 0: `rate_limit_per_second`.",
    source: "decisions of document 1, limits not shown",
    reloadable: true,
  }),
}
