/** Rules across settings, beyond the range of each one. */
import { Redacted } from "effect"
import type { SettingProblem } from "#schemas/setting.ts"
import type { Role, Settings } from "#schemas/settings.ts"

/**
 * RFC 7518 §3.2: an HS256 key has at least the length of its hash. So does the cluster's secret.
 */
const secret_bytes_min = 32

/** The first violated rule, or undefined. */
export const firstViolation = (settings: Settings): SettingProblem | undefined => {
  for (const rule of [
    services,
    roles,
    address,
    tls,
    tokens,
    certificates,
    jwt,
    keystone,
    machines,
    nats,
    cluster,
    limits,
    capital,
    carrier,
    webhooks,
    networks,
  ]) {
    const wrong = rule(settings)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** Whether a listener on this host is reachable from this machine only. */
export const isLoopback = (host: string) =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)

const services = ({ services }: Settings): SettingProblem | undefined =>
  services.length > 0 ? undefined : { path: "services", problem: "needs at least one service" }

/** Roles that a process must take itself if its bus is private. */
const roles_of_a_bus = ["actors", "conductor"] as const

const roles = ({ roles, services, nats, database }: Settings): SettingProblem | undefined => {
  const wrong = (problem: string): SettingProblem => ({ path: "roles", problem })
  if (roles.length === 0) return wrong("needs at least one role")
  const missing = roles_of_a_bus.filter((role) => !roles.includes(role))
  if (nats.url === "" && missing.length > 0) {
    return wrong(
      `needs ${missing.join(" and ")}, or nats.url with other processes that have these roles`,
    )
  }
  const only = (role: Role) => roles.every((other) => other === role)
  if (only("projections") && !database.connection.startsWith("postgres")) {
    return wrong(
      "projections alone needs PostgreSQL, because each gateway has its own SQLite files",
    )
  }
  if (only("blob") && !services.includes("blob-storage")) {
    return wrong("blob alone needs the service blob-storage")
  }
  if (only("agent") && !services.includes("share-protection")) {
    return wrong("agent alone needs the service share-protection")
  }
  return undefined
}

const address = ({ api }: Settings): SettingProblem | undefined => {
  if (!api.noauth || api.noauth_unsafe || isLoopback(api.bind_host)) return undefined
  const problem = `is rejected on ${api.bind_host}, which is not loopback: set api.bind_host`
  return { path: "api.noauth", problem: `${problem} to 127.0.0.1, or set api.noauth_unsafe too` }
}

const tls = ({ tls }: Settings): SettingProblem | undefined => {
  if (tls.cert !== "" && tls.key === "") return { path: "tls.cert", problem: "needs tls.key" }
  if (tls.key !== "" && tls.cert === "") return { path: "tls.key", problem: "needs tls.cert" }
  if (tls.client_ca !== "" && tls.cert === "") {
    return { path: "tls.client_ca", problem: "needs tls.cert and tls.key" }
  }
  if (tls.client_certificates.length > 0 && tls.client_ca === "") {
    return { path: "tls.client_certificates", problem: "needs tls.client_ca" }
  }
  return undefined
}

/** RFC 6750 §2.1: the syntax of a bearer token. */
const bearer = /^[\w.~+/-]+=*$/

const tokens = ({ auth }: Settings): SettingProblem | undefined => {
  for (const [n, entry] of auth.tokens.entries()) {
    const path = `auth.tokens[${n}]`
    const token = Redacted.value(entry.token)
    const is_plain = token !== "" || entry.token_file !== ""
    if (is_plain === (entry.sha256 !== ""))
      return { path, problem: "needs exactly one of token, token_file and sha256" }
    if (token !== "" && !bearer.test(token)) {
      return {
        path: `${path}.token`,
        problem: "contains characters that a bearer token cannot have (RFC 6750)",
      }
    }
    if (auth.tokens.findIndex((other) => other.name === entry.name) !== n) {
      return { path: `${path}.name`, problem: `is the name of an earlier token: ${entry.name}` }
    }
    const same = auth.tokens.findIndex(
      (other) => Redacted.value(other.token) === token && other.sha256 === entry.sha256,
    )
    if (same !== n) {
      return { path, problem: `is the same token as that of ${auth.tokens[same]?.name}` }
    }
  }
  return undefined
}

const certificates = ({ tls }: Settings): SettingProblem | undefined => {
  const subjects = tls.client_certificates.map(({ subject }) => subject)
  const twice = subjects.findIndex((subject, n) => subjects.indexOf(subject) !== n)
  if (twice < 0) return undefined
  return { path: `tls.client_certificates[${twice}].subject`, problem: "is listed twice" }
}

const jwt = ({ auth: { jwt } }: Settings): SettingProblem | undefined => {
  const secret = Redacted.value(jwt.hs256_secret)
  if (secret !== "" && new TextEncoder().encode(secret).length < secret_bytes_min) {
    return { path: "auth.jwt.hs256_secret", problem: `needs ${secret_bytes_min} bytes or more` }
  }
  if (jwt.jwks_url !== "" && jwt.jwks_file !== "") {
    return { path: "auth.jwt.jwks_file", problem: "and auth.jwt.jwks_url cannot both be set" }
  }
  if (jwt.jwks_url.startsWith("http:") && !isLoopback(new URL(jwt.jwks_url).hostname)) {
    return { path: "auth.jwt.jwks_url", problem: "must be https:// unless its host is loopback" }
  }
  return undefined
}

const keystone = ({ identity, api, keystone_authtoken }: Settings): SettingProblem | undefined => {
  if (identity.kind !== "keystone") return undefined
  if (api.noauth)
    return { path: "api.noauth", problem: "and identity.kind keystone cannot both be set" }
  for (const name of ["auth_url", "username", "project_name"] as const) {
    if (keystone_authtoken[name] === "") return needed(`keystone_authtoken.${name}`)
  }
  const { password } = keystone_authtoken
  return Redacted.value(password) === "" ? needed("keystone_authtoken.password") : undefined
}

const needed = (path: string): SettingProblem => ({
  path,
  problem: "is required, because identity.kind is keystone",
})

/** Machines in the cloud need a bus that they can reach. */
const machines = ({ compute, identity, nats }: Settings): SettingProblem | undefined => {
  if (compute.kind !== "nova") return undefined
  const path = "compute.kind"
  if (identity.kind !== "keystone") return { path, problem: "nova needs identity.kind keystone" }
  if (nats.url === "") return { path, problem: "nova needs nats.url" }
  return compute.flavor === "" ? { path, problem: "nova needs compute.flavor" } : undefined
}

/** Each subscriber has ten consumers, of the mirror's thousand. */
const subscribers_max = 32

const nats = ({ nats }: Settings): SettingProblem | undefined => {
  const password = Redacted.value(nats.password) !== "" || nats.password_file !== ""
  if (password && nats.user === "") return { path: "nats.password", problem: "needs nats.user" }
  if (nats.creds_file !== "" && nats.user !== "") {
    return { path: "nats.creds_file", problem: "and nats.user cannot both be set" }
  }
  if ((nats.tls_cert === "") !== (nats.tls_key === "")) {
    return { path: "nats.tls_cert", problem: "and nats.tls_key must be set together" }
  }
  for (const name of ["user", "creds_file", "tls_ca", "tls_cert"] as const) {
    if (nats[name] !== "" && nats.url === "") {
      return { path: `nats.${name}`, problem: "needs nats.url" }
    }
  }
  const { subscribers } = nats
  if (subscribers.length > 0 && nats.url !== "") {
    const problem =
      "works only with the embedded NATS server: at nats.url, add users to the server's " +
      "configuration"
    return { path: "nats.subscribers", problem }
  }
  if (subscribers.length > subscribers_max || new Set(subscribers).size < subscribers.length) {
    const problem = `must have at most ${subscribers_max} different names`
    return { path: "nats.subscribers", problem }
  }
  if (nats.replicas > 1 && nats.url === "") {
    return { path: "nats.replicas", problem: "above 1 needs a cluster at nats.url" }
  }
  return undefined
}

const cluster = ({ cluster, nats, tls }: Settings): SettingProblem | undefined => {
  const secret = Redacted.value(cluster.secret)
  if (secret !== "" && secret.length < secret_bytes_min) {
    return { path: "cluster.secret", problem: `needs ${secret_bytes_min} characters or more` }
  }
  const file = cluster.secret_file
  if (cluster.join.length > 0 && secret === "" && file === "" && tls.client_ca === "") {
    return { path: "cluster.join", problem: "needs cluster.secret or tls.client_ca" }
  }
  if (cluster.join.length > 0 && nats.url === "") {
    const problem = "needs nats.url: the NATS server with the log that all members share"
    return { path: "cluster.join", problem }
  }
  if (cluster.heartbeat_deadline_seconds <= cluster.heartbeat_interval_seconds) {
    const problem = "must be above cluster.heartbeat_interval_seconds"
    return { path: "cluster.heartbeat_deadline_seconds", problem }
  }
  if (cluster.remove_after_seconds <= cluster.heartbeat_deadline_seconds) {
    const problem = "must be above cluster.heartbeat_deadline_seconds"
    return { path: "cluster.remove_after_seconds", problem }
  }
  return undefined
}

const limits = ({ api, blob, conductor }: Settings): SettingProblem | undefined => {
  if (blob.json_body_bytes_max > blob.stream_bytes_max) {
    return { path: "blob.json_body_bytes_max", problem: "must not be above blob.stream_bytes_max" }
  }
  if (api.default_limit > api.max_limit) {
    return { path: "api.default_limit", problem: "must not be above api.max_limit" }
  }
  if (conductor.min_workers > conductor.max_workers) {
    return { path: "conductor.min_workers", problem: "must not be above conductor.max_workers" }
  }
  if (api.rate_limit_burst > 0 && api.rate_limit_per_second === 0) {
    return { path: "api.rate_limit_burst", problem: "needs api.rate_limit_per_second" }
  }
  return undefined
}

const capital = ({ capital }: Settings): SettingProblem | undefined => {
  const token = Redacted.value(capital.token)
  if (token !== "" && !bearer.test(token)) {
    return {
      path: "capital.token",
      problem: "contains characters that a bearer token cannot have (RFC 6750)",
    }
  }
  if (capital.prices_source === "csv" && capital.prices_dir === "") {
    return { path: "capital.prices_dir", problem: "is required with capital.prices_source csv" }
  }
  if (capital.prices_source === "stooq" && Redacted.value(capital.stooq_key) === "") {
    return { path: "capital.stooq_key", problem: "is required with capital.prices_source stooq" }
  }
  return undefined
}

const carrier = ({
  carrier: { registry, registry_url, web_key },
}: Settings): SettingProblem | undefined => {
  const url = URL.canParse(registry_url) ? new URL(registry_url) : undefined
  if (url === undefined || url.username !== "" || url.password !== "") {
    return { path: "carrier.registry_url", problem: "must be a URL without user or password" }
  }
  const key = Redacted.value(web_key)
  if (registry === "fmcsa" && key === "") {
    return { path: "carrier.web_key", problem: "is required with carrier.registry fmcsa" }
  }
  if (printable.test(key)) return undefined
  return { path: "carrier.web_key", problem: "contains spaces or characters that are not ASCII" }
}

/** FMCSA would reject a key with a copied line break as unknown. */
const printable = /^[\x21-\x7e]*$/

const webhooks = ({ webhooks }: Settings): SettingProblem | undefined => {
  const key = Redacted.value(webhooks.key)
  if (key === "" || new TextEncoder().encode(key).length >= secret_bytes_min) return undefined
  return { path: "webhooks.key", problem: `needs ${secret_bytes_min} bytes or more` }
}

const networks = (settings: Settings): SettingProblem | undefined => {
  const { webhooks, targets, api } = settings
  const all = {
    "webhooks.allowed_networks": webhooks.allowed_networks,
    "targets.allowed_networks": targets.allowed_networks,
    "api.unlimited_addresses": api.unlimited_addresses,
  }
  for (const [name, given] of Object.entries(all)) {
    const wrong = given.findIndex((network) => !isNetwork(network))
    if (wrong >= 0)
      return { path: `${name}[${wrong}]`, problem: "is not a network such as 10.0.0.0/8" }
  }
  return undefined
}

/** Checks an address and its prefix length. */
const isNetwork = (network: string) => {
  const [address = "", bits = ""] = network.split("/")
  const is_v6 = address.includes(":")
  const url = `http://${is_v6 ? `[${address}]` : address}`
  const host = URL.canParse(url) ? new URL(url).hostname : ""
  return is_v6
    ? host !== "" && Number(bits) <= address_bits.v6
    : host === address && Number(bits) <= address_bits.v4
}

const address_bits = { v4: 32, v6: 128 } as const
