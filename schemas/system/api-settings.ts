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
    meaning: "Which shape of document 2 is served.",
    source: "decisions of document 2, which shape",
  }),
  noauth: setting(flag, false, {
    meaning: "No authentication: every caller is the development tenant with all roles.",
    source: "document 2 §5",
  }),
  noauth_unsafe: setting(flag, false, {
    meaning: "Allows `noauth` on an address that other machines reach.",
    source: "decisions, safety of defaults",
  }),
  default_limit: setting(integer(1, page_limit_max, "items"), 100, {
    meaning: "Items of a page where a request does not say how many.",
    source: "document 2 §8",
  }),
  max_limit: setting(integer(1, page_limit_max, "items"), page_limit_max, {
    meaning: "Most items of a page that a request may ask for.",
    source: "document 2 §8",
  }),
  max_connections: setting(integer(1, connections_max, "connections"), 10_000, {
    meaning:
      "Connections of clients that are open at a time, at most three quarters of the files that " +
      "the process may open. On more of them only `/livez`, `/readyz` and `/metrics` are answered.",
    source: "decision 0154",
  }),
  max_connections_per_address: setting(integer(1, connections_max, "connections"), 1000, {
    meaning:
      "Connections of one address, or one IPv6 network of /64, that are open at a time. On some " +
      "more of them the answer is 503, and what is beyond those is closed.",
    source: "decision 0186",
  }),
  unlimited_addresses: setting(list(network), ["127.0.0.0/8", "::1/128"], {
    meaning:
      "Networks to which `api.max_connections_per_address` does not apply, and for which some of " +
      "`api.max_connections` are kept free: name your reverse proxies here, beside this machine.",
    source: "decision 0186",
  }),
  max_event_streams: setting(integer(1, streams_max, "streams"), 256, {
    meaning:
      "Streams of `GET /v1/events` that are open at a time, a sixteenth of them for admins " +
      "alone: 503 beyond. Each may hold 8 MiB that its reader has not taken yet.",
    source: "decision 0179",
  }),
  max_event_streams_per_caller: setting(integer(1, streams_max, "streams"), 32, {
    meaning:
      "Streams of `GET /v1/events` that one caller may have open; all callers of a project " +
      "have half of what there is. 429 beyond.",
    source: "decision 0179",
  }),
  request_timeout_seconds: setting(integer(1, hour_s, "seconds"), 60, {
    meaning: "Seconds for a request from its body's end, and seconds that a stream may idle: 504.",
    source: "decisions of document 1, limits not shown",
    reloadable: true,
  }),
  body_bytes_per_second_min: setting(integer(0, bytes_per_second_max, "bytes"), 16_384, {
    meaning:
      "Slowest rate of a request body, averaged from `api.request_timeout_seconds` on: 408 below " +
      "it, and the connection closes. A body that is no stream may also take ten times " +
      "`api.request_timeout_seconds` at most; 0: no such rate.",
    source: "decision 0186",
    reloadable: true,
  }),
  drain_seconds: setting(integer(0, drain_s_max, "seconds"), 0, {
    meaning:
      "Seconds that a stopping process still answers, while `/readyz` says 503, so " +
      "that load balancers send requests elsewhere.",
    source: "decision 0140",
    reloadable: true,
  }),
  rate_limit_per_second: setting(integer(0, requests_per_second_max, "requests"), 0, {
    meaning: "Requests of one caller per second, above which 429 is answered; 0 is off.",
    source: "decisions of document 1, limits not shown",
    reloadable: true,
  }),
  rate_limit_burst: setting(integer(0, requests_per_second_max, "requests"), 0, {
    meaning: "Requests that may come at once; 0: as many as in one second.",
    source: "decisions of document 1, limits not shown",
    reloadable: true,
  }),
}
