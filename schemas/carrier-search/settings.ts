/** Settings of carrier search. Source: decisions of document 3; market facts B2. */
import { mc_number_max } from "#schemas/carrier-search/carrier.ts"
import { choice, integer, secret, setting, text } from "#schemas/setting.ts"

const from_registry = "decisions of document 3, carrier registry"
const from_pace = "market facts B2"
const day_s = 86_400

/** Section `[carrier]`. */
export const carrier = {
  registry: setting(choice("auto", "fmcsa", "mirror"), "auto", {
    meaning:
      "Registry that searches use. auto: FMCSA if a web key is set, otherwise the mirror if one " +
      "was imported.",
    source: from_registry,
  }),
  registry_url: setting(
    text(/^https?:\/\/[^\s?#]{1,500}$/, "http:// or https://, host and path"),
    "https://mobile.fmcsa.dot.gov/qc/services",
    { meaning: "Base URL of FMCSA's QCMobile API.", source: from_registry },
  ),
  web_key: setting(secret, "", {
    meaning: "Your own QCMobile web key. Can also be set with `FMCSA_WEB_KEY`.",
    source: from_registry,
  }),
  web_key_file: setting(text(), "", {
    meaning: "File that contains `web_key`.",
    source: from_registry,
  }),
  mirror: setting(text(), "", {
    meaning: "File of the carrier mirror; empty: `carriers.sqlite` in the data folder.",
    source: from_registry,
  }),
  max_range: setting(integer(1, mc_number_max, "numbers"), 1_000_000, {
    meaning: "Maximum number of MC numbers in one search.",
    source: "decisions of document 3, carrier range",
  }),
  concurrency: setting(integer(1, 256, "requests"), 8, {
    meaning: "Maximum number of concurrent requests to FMCSA; fewer while it is busy.",
    source: from_pace,
  }),
  rate_per_second: setting(integer(0, 10_000, "requests per second"), 10, {
    meaning: "Maximum rate of requests to FMCSA; 0: limited only by its response time.",
    source: from_pace,
  }),
  timeout_seconds: setting(integer(1, 300, "seconds"), 10, {
    meaning: "Timeout of one request to FMCSA, in seconds.",
    source: from_pace,
  }),
  tries: setting(integer(1, 10, "requests"), 4, {
    meaning: "Maximum number of attempts for one MC number while FMCSA is busy.",
    source: from_pace,
  }),
  retry_percent: setting(integer(0, 100, "percent"), 10, {
    meaning:
      "Retry budget of one search, as a share of its MC numbers; 20 retries are always allowed.",
    source: from_pace,
  }),
  cache_seconds: setting(integer(0, 30 * day_s, "seconds"), 0, {
    meaning: "Seconds for which FMCSA's responses are cached; 0: no cache.",
    source: from_pace,
  }),
}
