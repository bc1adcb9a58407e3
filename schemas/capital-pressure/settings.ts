/** Settings of the capital pressure dashboard. Source: decisions of document 3. */
import { choice, flag, list, secret, setting, text } from "#schemas/setting.ts"

const from_storage = "decisions of document 3, dashboard storage"
const from_registry = "decisions of document 3, metric registry"
const from_auth = "decisions of document 3, dashboard auth"

/** Section `[capital]`. */
export const capital = {
  database: setting(text(), "", {
    meaning:
      "File of the dashboard's read model, in an existing folder; empty: " +
      "`capital-pressure.sqlite` in the data folder.",
    source: from_storage,
  }),
  scheduler: setting(flag, false, {
    meaning:
      "Whether scheduled ingests run; when false, data is fetched only by the ingest command.",
    source: "decisions of document 3, scheduler",
  }),
  token: setting(secret, "", {
    meaning: "Token required for all paths under `/api`; empty: they are public.",
    source: from_auth,
  }),
  token_file: setting(text(), "", { meaning: "File that contains `token`.", source: from_auth }),
  cors_origins: setting(
    list(text(/^https?:\/\/[^\s/]{1,253}$/, "http:// or https://, host and port")),
    ["http://localhost:5173", "http://127.0.0.1:5173"],
    {
      meaning: "Origins allowed to read `/api` and `/health` from a browser (CORS).",
      source: "document 3 §1 A",
    },
  ),
  prices_source: setting(choice("yahoo", "stooq", "csv"), "yahoo", {
    meaning: "Source of prices. Can also be set with `PRICES_SOURCE`.",
    source: from_registry,
  }),
  prices_dir: setting(text(), "", {
    meaning: "Folder with one file TICKER.csv for each ticker, for `prices_source` csv.",
    source: from_registry,
  }),
  stooq_key: setting(secret, "", {
    meaning: "Your own API key for `prices_source` stooq, which requires one.",
    source: from_registry,
  }),
  stooq_key_file: setting(text(), "", {
    meaning: "File that contains `stooq_key`.",
    source: from_registry,
  }),
  fred_key: setting(secret, "", {
    meaning:
      "Your own API key for FRED; empty: its public files are used. Can also be set with " +
      "`FRED_API_KEY`.",
    source: from_registry,
  }),
  fred_key_file: setting(text(), "", {
    meaning: "File that contains `fred_key`.",
    source: from_registry,
  }),
  contact: setting(text(/^[ -'*-~]{0,200}$/, "at most 200 ASCII characters, no parentheses"), "", {
    meaning: "Contact address for publishers, sent with each request.",
    source: from_registry,
  }),
  cftc_tls_verify: setting(flag, false, {
    meaning:
      "Whether the CFTC's certificate is verified. Can also be set with `CFTC_TLS_VERIFY=1`.",
    source: "document 3 §1 A; decisions of document 3, TLS verification off",
  }),
  watchlist: setting(text(), "", {
    meaning: "File with your watchlist targets; empty: `watchlist.json` in the data folder.",
    source: "decisions of document 3, watchlist",
  }),
}
