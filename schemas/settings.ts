/** All settings with their defaults. Source: decisions, "configuration". */
import { blob, cluster } from "#schemas/blob-storage/settings.ts"
import { capital } from "#schemas/capital-pressure/settings.ts"
import { carrier } from "#schemas/carrier-search/settings.ts"
import { plant } from "#schemas/plant-disease/settings.ts"
import {
  choice,
  flag,
  type Group,
  integer,
  list,
  ratio,
  secret,
  setting,
  settingsOf,
  tables,
  text,
  url,
  type Values,
} from "#schemas/setting.ts"
import { identity, keystone_authtoken, manila } from "#schemas/share-protection/cloud-settings.ts"
import { compute } from "#schemas/share-protection/compute-settings.ts"
import {
  catalog,
  conductor,
  database,
  engine,
  enrollment,
  policy,
  quota,
  shares,
  targets,
  worker,
} from "#schemas/share-protection/settings.ts"
import { api } from "#schemas/system/api-settings.ts"
import { events, webhooks } from "#schemas/system/settings.ts"
import { principal_name_pattern, role_pattern, scopes } from "#schemas/token.ts"

/** An hour: a longer request or a larger clock difference is a mistake. */
const hour_s = 3600
const day_s = 86_400
/** An error's detail is a short text, never a document. */
const detail_bytes_max = 65_536
const commits_max = 1_000_000

const data = {
  dir: setting(text(/^[^\r\n\0]+$/), "./data", {
    meaning: "Folder of everything that is kept. `ALMANAC_DATA_DIR` sets it too.",
    source: "decisions, configuration",
  }),
}

const granted_scopes = setting(list(choice(...scopes)), [], {
  meaning: "Scopes of the blob service.",
  source: "decisions of document 1, auth",
})
const granted_roles = setting(list(text(role_pattern, "role names")), [], {
  meaning: "Roles of share protection.",
  source: "decisions of document 2, default policy rules",
})
const id = text(/^[\w.:@-]{0,128}$/, "letters, digits and . : @ _ -, at most 128")
const project_id = setting(id, "", { meaning: "Project.", source: "document 2 §5" })
const domain_id = setting(id, "", { meaning: "Domain.", source: "document 2 §5" })
const user_id = setting(id, "", { meaning: "User.", source: "document 2 §5" })
const grant = { scopes: granted_scopes, roles: granted_roles, project_id, domain_id, user_id }

const name = setting(text(principal_name_pattern, "letters, digits and . : @ _ -"), "", {
  meaning: "Who it is, as the log names it.",
  source: "decisions of document 1, auth",
})

const client_certificate = {
  subject: setting(text(/^(CN=|DNS:|URI:|email:)[^\r\n\0]+$/, "CN=, DNS:, URI: or email:"), "", {
    meaning: "The common name or an alternative name of the certificate, exactly.",
    source: "decisions, safety of defaults",
  }),
  ...grant,
}

const tls = {
  cert: setting(text(), "", {
    meaning: "Certificate with its chain (PEM); with `key` TLS is served. Changes count at once.",
    source: "decisions, safety of defaults",
  }),
  key: setting(text(), "", {
    meaning: "File of the private key (PEM).",
    source: "decisions, safety of defaults",
  }),
  client_ca: setting(text(), "", {
    meaning: "File of the authorities (PEM) whose client certificates are accepted.",
    source: "decisions, safety of defaults",
  }),
  client_certificates: setting(tables(client_certificate), [], {
    meaning: "What a client certificate may do, by subject; one that is not listed may do nothing.",
    source: "decisions, safety of defaults",
  }),
}

const static_token = {
  name,
  token: setting(secret, "", { meaning: "The token.", source: "decisions of document 1, auth" }),
  token_file: setting(text(), "", {
    meaning: "File that holds the token.",
    source: "decisions of document 1, auth",
  }),
  sha256: setting(text(/^$|^[0-9a-f]{64}$/, "64 lower-case hex characters"), "", {
    meaning: "The token's SHA-256, so that the file holds no secret.",
    source: "decisions of document 1, auth",
  }),
  ...grant,
}

const from_jwt = "decisions of document 1, auth"

const jwt = {
  hs256_secret: setting(secret, "", {
    meaning: "Shared secret of HS256 tokens, at least 32 bytes.",
    source: from_jwt,
  }),
  hs256_secret_file: setting(text(), "", {
    meaning: "File that holds `hs256_secret`.",
    source: from_jwt,
  }),
  jwks_url: setting(url("https", "http"), "", {
    meaning: "Where the public keys are fetched; plain http on loopback only.",
    source: from_jwt,
  }),
  jwks_file: setting(text(), "", { meaning: "File of the public keys (JWKS).", source: from_jwt }),
  issuer: setting(text(), "", {
    meaning: "The `iss` that a token must have; empty: any.",
    source: from_jwt,
  }),
  audience: setting(text(), "", {
    meaning: "The `aud` that a token must have; empty: any.",
    source: from_jwt,
  }),
  algorithms: setting(list(choice("HS256", "RS256", "EdDSA")), ["HS256", "RS256", "EdDSA"], {
    meaning:
      "Accepted algorithms. HS256 is checked with the secret only, the others with the JWKS.",
    source: from_jwt,
  }),
  clock_tolerance_seconds: setting(integer(0, hour_s, "seconds"), 0, {
    meaning: "Seconds that the issuer's clock may differ from ours, for `exp` and `nbf`.",
    source: from_jwt,
  }),
}

const auth = {
  tokens: setting(tables(static_token), [], {
    meaning: "Static tokens; each gives one of `token`, `token_file` and `sha256`.",
    source: "decisions of document 1, auth",
  }),
  jwt,
}

const error = {
  include_detail: setting(flag, true, {
    meaning: "Whether an error's `detail` is filled; false leaves it empty.",
    source: "document 1 §7",
    reloadable: true,
  }),
  include_grpc_code: setting(flag, false, {
    meaning: "Whether an error carries `grpc_code` too.",
    source: "document 1 §7",
    reloadable: true,
  }),
  max_detail_bytes: setting(integer(0, detail_bytes_max, "bytes"), 512, {
    meaning: "Length in bytes to which an error's `detail` is cut.",
    source: "document 1 §7",
    reloadable: true,
  }),
}

const json = {
  int64: setting(choice("number", "string"), "number", {
    meaning: "How 64-bit integers are written: exact JSON integers, or texts as proto3 does.",
    source: "decisions of document 1, int64/uint64 in JSON",
  }),
}

const from_nats = "decisions, NATS"

/** Also a consumer name and, in upper case, part of an environment variable. */
const subscriber_pattern = /^[a-z][a-z0-9]{0,31}$/

const nats = {
  url: setting(url("nats", "tls", "ws", "wss"), "", {
    meaning: "Servers to use, commas between them; empty: a server of our own on loopback.",
    source: from_nats,
  }),
  user: setting(text(), "", { meaning: "User at `url`.", source: from_nats }),
  password: setting(secret, "", { meaning: "Password at `url`.", source: from_nats }),
  password_file: setting(text(), "", {
    meaning: "File that holds `password`.",
    source: from_nats,
  }),
  creds_file: setting(text(), "", {
    meaning: "Credentials file (JWT and seed) for `url`, instead of user and password.",
    source: from_nats,
  }),
  tls_ca: setting(text(), "", {
    meaning: "File of the authorities (PEM) that sign the certificates of `url`.",
    source: from_nats,
  }),
  tls_cert: setting(text(), "", {
    meaning: "File of our certificate (PEM) for `url`.",
    source: from_nats,
  }),
  tls_key: setting(text(), "", {
    meaning: "File of our private key (PEM) for `url`.",
    source: from_nats,
  }),
  replicas: setting(integer(1, 5, "copies"), 1, {
    meaning: "Copies of each stream; above 1 only with a cluster at `url`.",
    source: "design, from laptop to many machines",
  }),
  subscribers: setting(list(text(subscriber_pattern, "names of letters and digits")), [], {
    meaning:
      "Subscribers that have a user of their own at our own server, so that no other one reads " +
      "or deletes what is theirs; `dev-credentials.json` has their passwords.",
    source: "decision 0174",
  }),
  binary: setting(text(), "", {
    meaning: "Path of `nats-server`; empty: PATH, then the cache.",
    source: "decisions, binaries",
  }),
}

const metrics = {
  public: setting(flag, false, {
    meaning: "Whether `/metrics` answers without the admin token.",
    source: "decisions, health",
    reloadable: true,
  }),
}

const telemetry = {
  otlp_url: setting(url("http", "https"), "", {
    meaning: "Where traces are sent by OTLP over HTTP; empty: nowhere.",
    source: "decisions, configuration",
  }),
  sample_ratio: setting(ratio, 1, {
    meaning:
      "The share of traces that is sent, by their id. A request that names a trace by its " +
      "`traceparent` is sent or not as that says.",
    source: "OpenTelemetry, probability sampling; decision 0154",
  }),
}

const audit = {
  checkpoint_commits: setting(integer(1, commits_max, "commits"), 1000, {
    meaning: "Commits after which a checkpoint ties the chains of the log together.",
    source: "design, log",
  }),
  checkpoint_seconds: setting(integer(1, day_s, "seconds"), 300, {
    meaning: "Seconds after which a checkpoint is written where commits are few.",
    source: "design, log",
  }),
  key_file: setting(text(), "", {
    meaning:
      "File of the Ed25519 key (PEM) that heads of the log are signed with; empty: " +
      "`audit-key.pem` in the data folder. Gateways that share a log need the same.",
    source: "decision 0140",
  }),
  index: setting(flag, true, {
    meaning: "Whether `GET /v1/admin/audit` is answered here; one or two nodes are enough.",
    source: "decision 0126",
  }),
}

const log = {
  level: setting(choice("trace", "debug", "info", "warning", "error", "fatal"), "info", {
    meaning: "Least level that standard error shows.",
    source: "decisions, configuration",
    reloadable: true,
  }),
}

const services = [
  "blob-storage",
  "share-protection",
  "capital-pressure",
  "carrier-search",
  "plant-disease",
] as const

/** The roles that the processes of a deployment divide among themselves. Source: decision 0140. */
export const roles = ["gateway", "actors", "conductor", "projections", "agent", "blob"] as const

/** A part of the work that a process does; a single machine has all of them. */
export type Role = (typeof roles)[number]

/** All sections and settings, in the order of the documentation. */
export const settings = {
  services: setting(list(choice(...services)), services, {
    meaning: "Services that this process serves.",
    source: "decisions, one server or five",
  }),
  roles: setting(list(choice(...roles)), roles, {
    meaning: "Parts of the work that this process does; less than all needs `nats.url`.",
    source: "decision 0140",
  }),
  data,
  api,
  tls,
  auth,
  error,
  json,
  nats,
  blob,
  cluster,
  DEFAULT: catalog,
  identity,
  keystone_authtoken,
  conductor,
  enrollment,
  targets,
  engine,
  worker,
  compute,
  database,
  quota,
  shares,
  manila,
  policy,
  capital,
  carrier,
  plant,
  events,
  webhooks,
  metrics,
  telemetry,
  audit,
  log,
} satisfies Group

/** The settings of a process; an empty text or secret means "not set". */
export type Settings = Values<typeof settings>

/** All settings by dotted name, such as `api.bind_port`. */
export const settings_by_path = new Map(settingsOf(settings))

/** A setting's environment variable: `ALMANAC_API__BIND_PORT` for `api.bind_port`. */
export const variableOf = (path: string) => `ALMANAC_${path.replaceAll(".", "__").toUpperCase()}`
