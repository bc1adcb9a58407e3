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
      "Which registry answers. auto: FMCSA where a key is set, otherwise the mirror where one " +
      "was imported.",
    source: from_registry,
  }),
  registry_url: setting(
    text(/^https?:\/\/[^\s?#]{1,500}$/, "http:// or https://, host and path"),
    "https://mobile.fmcsa.dot.gov/qc/services",
    { meaning: "Where FMCSA's QCMobile is asked.", source: from_registry },
  ),
  web_key: setting(secret, "", {
    meaning: "Your own QCMobile web key. `FMCSA_WEB_KEY` sets it too.",
    source: from_registry,
  }),
  web_key_file: setting(text(), "", {
    meaning: "File that holds `web_key`.",
    source: from_registry,
  }),
  mirror: setting(text(), "", {
    meaning: "File of the mirror; empty: `carriers.sqlite` in the data folder.",
    source: from_registry,
  }),
  max_range: setting(integer(1, mc_number_max, "numbers"), 1_000_000, {
    meaning: "Numbers that one search may ask for.",
    source: "decisions of document 3, carrier range",
  }),
  concurrency: setting(integer(1, 256, "requests"), 8, {
    meaning: "Requests to FMCSA under way at once, at most; fewer while it is busy.",
    source: from_pace,
  }),
  rate_per_second: setting(integer(0, 10_000, "requests per second"), 10, {
    meaning: "Requests to FMCSA per second, at most; 0: as many as it answers.",
    source: from_pace,
  }),
  timeout_seconds: setting(integer(1, 300, "seconds"), 10, {
    meaning: "How long FMCSA may take for one number.",
    source: from_pace,
  }),
  tries: setting(integer(1, 10, "requests"), 4, {
    meaning: "How often one number is asked for while FMCSA is busy.",
    source: from_pace,
  }),
  retry_percent: setting(integer(0, 100, "percent"), 10, {
    meaning: "Repeats that one search may spend, of its numbers; 20 are always free.",
    source: from_pace,
  }),
  cache_seconds: setting(integer(0, 30 * day_s, "seconds"), 0, {
    meaning: "How long an answer of FMCSA is kept; 0: each search asks anew.",
    source: from_pace,
  }),
}
