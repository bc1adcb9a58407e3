/** Settings of the capital pressure dashboard. Source: decisions of document 3. */
import { choice, flag, list, secret, setting, text } from "#schemas/setting.ts"

const from_storage = "decisions of document 3, dashboard storage"
const from_registry = "decisions of document 3, metric registry"
const from_auth = "decisions of document 3, dashboard auth"

/** Section `[capital]`. */
export const capital = {
  database: setting(text(), "", {
    meaning:
      "File of the dashboard's read model, in a folder that there is; empty: " +
      "`capital-pressure.sqlite` in the data folder.",
    source: from_storage,
  }),
  scheduler: setting(flag, false, {
    meaning: "Whether the scheduled ingests run; off, nothing is fetched unasked.",
    source: "decisions of document 3, scheduler",
  }),
  token: setting(secret, "", {
    meaning: "Token that everything under `/api` asks for; empty: it is public.",
    source: from_auth,
  }),
  token_file: setting(text(), "", { meaning: "File that holds `token`.", source: from_auth }),
  cors_origins: setting(
    list(text(/^https?:\/\/[^\s/]{1,253}$/, "http:// or https://, host and port")),
    ["http://localhost:5173", "http://127.0.0.1:5173"],
    {
      meaning: "Origins whose pages may read `/api` and `/health`.",
      source: "document 3 §1 A",
    },
  ),
  prices_source: setting(choice("yahoo", "stooq", "csv"), "yahoo", {
    meaning: "Where prices are fetched. `PRICES_SOURCE` sets it too.",
    source: from_registry,
  }),
  prices_dir: setting(text(), "", {
    meaning: "Folder of the files TICKER.csv that `prices_source` csv reads.",
    source: from_registry,
  }),
  stooq_key: setting(secret, "", {
    meaning: "Your own key for `prices_source` stooq, which answers nobody without one.",
    source: from_registry,
  }),
  stooq_key_file: setting(text(), "", {
    meaning: "File that holds `stooq_key`.",
    source: from_registry,
  }),
  fred_key: setting(secret, "", {
    meaning:
      "Your own key for FRED; empty: its files for everybody are read. `FRED_API_KEY` sets it too.",
    source: from_registry,
  }),
  fred_key_file: setting(text(), "", {
    meaning: "File that holds `fred_key`.",
    source: from_registry,
  }),
  contact: setting(text(/^[ -'*-~]{0,200}$/, "at most 200 of ASCII, no parentheses"), "", {
    meaning: "An address by which publishers may reach you; it is sent with each request.",
    source: from_registry,
  }),
  cftc_tls_verify: setting(flag, false, {
    meaning: "Whether the CFTC's certificate is verified. `CFTC_TLS_VERIFY=1` sets it too.",
    source: "document 3 §1 A; decisions of document 3, TLS verification off",
  }),
  watchlist: setting(text(), "", {
    meaning: "File of your targets for the watchlist; empty: `watchlist.json` in the data folder.",
    source: "decisions of document 3, watchlist",
  }),
}
