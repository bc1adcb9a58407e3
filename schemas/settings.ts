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
    meaning: "Folder of all persistent data. Can also be set with `ALMANAC_DATA_DIR`.",
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
  meaning: "Name of the principal in the audit log.",
  source: "decisions of document 1, auth",
})

const client_certificate = {
  subject: setting(text(/^(CN=|DNS:|URI:|email:)[^\r\n\0]+$/, "CN=, DNS:, URI: or email:"), "", {
    meaning: "Common name or subject alternative name of the certificate; must match exactly.",
    source: "decisions, safety of defaults",
  }),
  ...grant,
}

const tls = {
  cert: setting(text(), "", {
    meaning:
      "Certificate with its chain (PEM); together with `key` it enables TLS. Changes apply at " +
      "once.",
    source: "decisions, safety of defaults",
  }),
  key: setting(text(), "", {
    meaning: "File of the private key (PEM).",
    source: "decisions, safety of defaults",
  }),
  client_ca: setting(text(), "", {
    meaning: "File with the CA certificates (PEM) whose client certificates are accepted.",
    source: "decisions, safety of defaults",
  }),
  client_certificates: setting(tables(client_certificate), [], {
    meaning: "Permissions of client certificates, by subject; unlisted certificates have none.",
    source: "decisions, safety of defaults",
  }),
}

const static_token = {
  name,
  token: setting(secret, "", { meaning: "The token.", source: "decisions of document 1, auth" }),
  token_file: setting(text(), "", {
    meaning: "File that contains the token.",
    source: "decisions of document 1, auth",
  }),
  sha256: setting(text(/^$|^[0-9a-f]{64}$/, "64 lower-case hex characters"), "", {
    meaning: "SHA-256 of the token, so that the configuration contains no secret.",
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
    meaning: "File that contains `hs256_secret`.",
    source: from_jwt,
  }),
  jwks_url: setting(url("https", "http"), "", {
    meaning: "URL of the public keys (JWKS); plain http only on loopback.",
    source: from_jwt,
  }),
  jwks_file: setting(text(), "", {
    meaning: "File with the public keys (JWKS).",
    source: from_jwt,
  }),
  issuer: setting(text(), "", {
    meaning: "Required `iss` of a token; empty: any.",
    source: from_jwt,
  }),
  audience: setting(text(), "", {
    meaning: "Required `aud` of a token; empty: any.",
    source: from_jwt,
  }),
  algorithms: setting(list(choice("HS256", "RS256", "EdDSA")), ["HS256", "RS256", "EdDSA"], {
    meaning:
      "Accepted algorithms. HS256 is verified with the secret only, the others with the JWKS.",
    source: from_jwt,
  }),
  clock_tolerance_seconds: setting(integer(0, hour_s, "seconds"), 0, {
    meaning: "Tolerated clock difference to the issuer in seconds, for `exp` and `nbf`.",
    source: from_jwt,
  }),
}

const auth = {
  tokens: setting(tables(static_token), [], {
    meaning: "Static tokens; each has exactly one of `token`, `token_file` and `sha256`.",
    source: "decisions of document 1, auth",
  }),
  jwt,
}

const error = {
  include_detail: setting(flag, true, {
    meaning: "Whether errors include a `detail`; false: it is empty.",
    source: "document 1 §7",
    reloadable: true,
  }),
  include_grpc_code: setting(flag, false, {
    meaning: "Whether errors include `grpc_code`.",
    source: "document 1 §7",
    reloadable: true,
  }),
  max_detail_bytes: setting(integer(0, detail_bytes_max, "bytes"), 512, {
    meaning: "Maximum length of an error's `detail` in bytes; longer ones are truncated.",
    source: "document 1 §7",
    reloadable: true,
  }),
}

const json = {
  int64: setting(choice("number", "string"), "number", {
    meaning: "Format of 64-bit integers in JSON: exact integers, or strings as in proto3.",
    source: "decisions of document 1, int64/uint64 in JSON",
  }),
}

const from_nats = "decisions, NATS"

/** Also a consumer name and, in upper case, part of an environment variable. */
const subscriber_pattern = /^[a-z][a-z0-9]{0,31}$/

const nats = {
  url: setting(url("nats", "tls", "ws", "wss"), "", {
    meaning: "NATS servers to use, separated by commas; empty: an embedded server on loopback.",
    source: from_nats,
  }),
  user: setting(text(), "", { meaning: "User name for `url`.", source: from_nats }),
  password: setting(secret, "", { meaning: "Password for `url`.", source: from_nats }),
  password_file: setting(text(), "", {
    meaning: "File that contains `password`.",
    source: from_nats,
  }),
  creds_file: setting(text(), "", {
    meaning: "Credentials file (JWT and seed) for `url`, instead of user and password.",
    source: from_nats,
  }),
  tls_ca: setting(text(), "", {
    meaning: "File with the CA certificates (PEM) that sign the certificates of `url`.",
    source: from_nats,
  }),
  tls_cert: setting(text(), "", {
    meaning: "File with the client certificate (PEM) for `url`.",
    source: from_nats,
  }),
  tls_key: setting(text(), "", {
    meaning: "File with the client's private key (PEM) for `url`.",
    source: from_nats,
  }),
  replicas: setting(integer(1, 5, "copies"), 1, {
    meaning: "Number of replicas of each stream; above 1 only with a cluster at `url`.",
    source: "design, from laptop to many machines",
  }),
  subscribers: setting(list(text(subscriber_pattern, "names made of letters and digits")), [], {
    meaning:
      "Subscribers that each get a user on the embedded server, so that no other subscriber can " +
      "read or delete their consumers; `dev-credentials.json` contains their passwords.",
    source: "decision 0174",
  }),
  binary: setting(text(), "", {
    meaning: "Path of `nats-server`; empty: looked up in PATH, then in the cache.",
    source: "decisions, binaries",
  }),
}

const metrics = {
  public: setting(flag, false, {
    meaning: "Whether `/metrics` can be read without the admin token.",
    source: "decisions, health",
    reloadable: true,
  }),
}

const telemetry = {
  otlp_url: setting(url("http", "https"), "", {
    meaning: "URL to which traces are sent by OTLP over HTTP; empty: no traces.",
    source: "decisions, configuration",
  }),
  sample_ratio: setting(ratio, 1, {
    meaning:
      "Share of traces that is sent, chosen by trace ID. For a request with a " +
      "`traceparent`, its sampling flag decides instead.",
    source: "OpenTelemetry, probability sampling; decision 0154",
  }),
}

const audit = {
  checkpoint_commits: setting(integer(1, commits_max, "commits"), 1000, {
    meaning: "Number of commits after which a checkpoint links the hash chains of the log.",
    source: "design, log",
  }),
  checkpoint_seconds: setting(integer(1, day_s, "seconds"), 300, {
    meaning: "Maximum interval between checkpoints in seconds, when there are few commits.",
    source: "design, log",
  }),
  key_file: setting(text(), "", {
    meaning:
      "File of the Ed25519 key (PEM) that signs the heads of the log; empty: " +
      "`audit-key.pem` in the data folder. Gateways that share a log need the same key.",
    source: "decision 0140",
  }),
  index: setting(flag, true, {
    meaning: "Whether this process serves `GET /v1/admin/audit`; one or two processes are enough.",
    source: "decision 0126",
  }),
}

const log = {
  level: setting(choice("trace", "debug", "info", "warning", "error", "fatal"), "info", {
    meaning: "Minimum level of log lines on standard error.",
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
    meaning: "Services of this process.",
    source: "decisions, one server or five",
  }),
  roles: setting(list(choice(...roles)), roles, {
    meaning: "Roles of this process; unless it has all of them, it needs `nats.url`.",
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
