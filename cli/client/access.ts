/**
 * Selects the server and the credentials: a profile, the environment, or the development server of
 * the data folder, in this order. Secrets come from files and variables, never from flags.
 *
 * Source: DECISIONS, How it is run and reached; decision 0020.
 */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { findCloud } from "#cli/client/clouds.ts"
import { failure } from "#cli/client/failure.ts"
import { fromJson, isObject, type Json, textAt } from "#cli/client/json.ts"
import { type OpenStack, signIn } from "#cli/client/keystone.ts"
import type { Need } from "#cli/client/operation.ts"
import { pinnedTo, type TlsTrust } from "#cli/client/pinned-certificate.ts"
import { findText, readToken } from "#cli/client/private-file.ts"
import { findProfile, profilesPath } from "#cli/client/profile.ts"

export interface Access {
  readonly url: string
  readonly tls: TlsTrust
  /** Authentication headers. */
  readonly headers: (need: Need, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>
  /** Advice if the token is rejected, and if nothing listens. */
  readonly sign_in: string
  readonly start: string
}

export interface AccessOptions {
  readonly env: NodeJS.ProcessEnv
  readonly profile?: string | undefined
  /** A principal of dev-credentials.json, `tenant_b` for example. */
  readonly as?: string | undefined
  /** The data folder of a server on this machine, and its certificate as the settings name it. */
  readonly data_dir: string
  readonly tls_cert?: string | undefined
  readonly signal: AbortSignal
}

const remote_start = "check the address, and that the server runs"

const authorityOf = async (path: string | undefined): Promise<Access["tls"]> => {
  if (path === undefined || path === "") return {}
  const ca = await readFile(path).catch((cause: Error) => {
    throw failure("usage", `${path} cannot be read: ${cause.message}`)
  })
  return { ca }
}

const addressOf = (url: string, from: string) => {
  const is_http = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
  if (!is_http) throw failure("usage", `${from} is not an http:// or https:// URL`)
  const { username, password } = new URL(url)
  // Messages would print it with the URL.
  if (`${username}${password}` !== "")
    throw failure("usage", `${from} must not contain a user name or password`)
  return new URL(url).href.replace(/\/+$/, "").replace(/\/v1$/, "")
}

/** Access with one token for all operations. */
const withToken = (
  url: string,
  tls: Access["tls"],
  token: string | undefined,
  from: string,
): Access => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return {
    url,
    tls,
    headers: async () => headers,
    start: remote_start,
    sign_in:
      token === undefined
        ? `set a token: ${from}`
        : `set a valid token in ${from}; to issue one on the server: almanac token issue --help`,
  }
}

/** Time before expiry to renew a Keystone token, in ms: the longest that a request may take. */
const renewal_ms = 60_000

/** Access with a Keystone token, renewed as needed: following and waiting may outlast one. */
const withKeystone = async (
  os: (name: string) => string | undefined,
  given_url: string | undefined,
  signal: AbortSignal,
): Promise<Access> => {
  const tls = await authorityOf(os("cacert"))
  // Reject an invalid URL before any other message can print it.
  addressOf(os("auth_url") ?? "", "OS_AUTH_URL")
  const signed = async (until: AbortSignal) => {
    const started_ms = performance.now()
    const { lifetime_ms, ...issued } = await signIn(os, tls, until)
    return { ...issued, renewed_ms: started_ms + lifetime_ms - renewal_ms }
  }
  let current = await signed(signal)
  const url = given_url ?? os("endpoint") ?? current.endpoint
  if (url === undefined) {
    const what = "The Keystone catalog has no share-protection service"
    throw failure(
      "usage",
      what,
      "set ALMANAC_URL, or register the service: almanac catalog register --help",
    )
  }
  return {
    url: addressOf(url, "the endpoint"),
    tls,
    start: remote_start,
    headers: async (_, until) => {
      if (performance.now() >= current.renewed_ms) current = await signed(until)
      return { "x-auth-token": current.token }
    },
    sign_in: "check the roles of this user in this project",
  }
}

/** Variables of a cloud in clouds.yaml; the caller's region and interface override them. */
const inCloud = async (env: NodeJS.ProcessEnv, name: string, os: OpenStack): Promise<OpenStack> => {
  const cloud = await findCloud(env, name)
  const chosen = new Set(["region_name", "interface"])
  return (name) => (chosen.has(name) ? os(name) : undefined) ?? cloud[name]
}

const fromProfile = async (profile: Record<string, string>, { env, signal }: AccessOptions) => {
  const os = (name: string) => profile[`os_${name}`]
  const url = profile.url === undefined ? undefined : addressOf(profile.url, "url")
  const cloud = os("cloud")
  if (cloud !== undefined) return await withKeystone(await inCloud(env, cloud, os), url, signal)
  if (os("auth_url") !== undefined) return await withKeystone(os, url, signal)
  const path = profilesPath(env)
  if (url === undefined) {
    throw failure("usage", `${path}: the profile has no url, os_cloud or os_auth_url`)
  }
  const token =
    profile.token ??
    (profile.token_file === undefined ? undefined : await readToken(profile.token_file)) ??
    os("token")
  return withToken(url, await authorityOf(profile.ca), token, `token or token_file in ${path}`)
}

const fromEnvironment = async ({ env, signal }: AccessOptions): Promise<Access | undefined> => {
  const os = (name: string) => env[`OS_${name.toUpperCase()}`] || undefined
  const cloud = os("cloud")
  // OS_ENDPOINT may belong to another cloud, which must not receive this one's token.
  const address = env.ALMANAC_URL || (cloud === undefined ? os("endpoint") : undefined)
  const url = address === undefined ? undefined : addressOf(address, "ALMANAC_URL")
  const file = env.ALMANAC_TOKEN_FILE
  const own = env.ALMANAC_TOKEN || (file ? await readToken(file) : undefined)
  if (own === undefined && cloud !== undefined) {
    return await withKeystone(await inCloud(env, cloud, os), url, signal)
  }
  if (own === undefined && os("auth_url") !== undefined) {
    return await withKeystone(os, url, signal)
  }
  if (url === undefined) return undefined
  const tls = await authorityOf(env.ALMANAC_CACERT || os("cacert"))
  return withToken(url, tls, own ?? os("token"), "ALMANAC_TOKEN or ALMANAC_TOKEN_FILE")
}

/** Principal of dev-credentials.json by need. */
const principals: Readonly<Record<Exclude<Need, "none">, string>> = {
  tenant: "tenant",
  domain_owner: "domain_owner",
  admin: "admin",
  blob: "blob",
}

const jsonIn = async (path: string): Promise<Json | undefined> => {
  const found = await findText(path)
  if (found === undefined) return undefined
  try {
    return fromJson(found.text)
  } catch {
    throw failure("usage", `${path} is not valid JSON`)
  }
}

const fromDataFolder = async (options: AccessOptions): Promise<Access | undefined> => {
  const { data_dir, as, tls_cert } = options
  const instance = await jsonIn(join(data_dir, "run", "instance.json"))
  const url = textAt(instance, "url")
  if (url === undefined) return undefined
  const path = join(data_dir, "dev-credentials.json")
  const credentials = await jsonIn(path)
  const tokenOf = (name: string) => textAt(credentials, `${name}.token`)
  if (as !== undefined && tokenOf(as) === undefined) {
    const known = isObject(credentials) ? Object.keys(credentials).filter(tokenOf).join(", ") : ""
    throw failure("usage", `${path} has no principal ${as}; it has: ${known || "none"}`)
  }
  // The server's own setting, which this command may not share; older servers do not record it.
  const cert = textAt(instance, "tls_cert") ?? tls_cert
  const tls = url.startsWith("https:") ? await authorityOf(cert) : {}
  return {
    url,
    start: "start it: npm start",
    tls: tls.ca === undefined ? {} : pinnedTo(tls.ca),
    headers: async (need) => {
      const token = need === "none" ? undefined : tokenOf(as ?? principals[need])
      return token === undefined ? {} : { authorization: `Bearer ${token}` }
    },
    sign_in:
      credentials === undefined
        ? "this server has no development tokens: set ALMANAC_URL and ALMANAC_TOKEN"
        : `the tokens in ${path} do not belong to this server: restart it`,
  }
}

/** The server of a profile or the environment. */
const named = async (options: AccessOptions): Promise<Access | undefined> => {
  const { env, profile } = options
  const profile_name = profile ?? (env.ALMANAC_PROFILE || undefined)
  const fromFile = async () => {
    const found = await findProfile(env, profile_name)
    return found === undefined ? undefined : await fromProfile(found, options)
  }
  if (profile_name !== undefined) return await fromFile()
  return (await fromEnvironment(options)) ?? (await fromFile())
}

/** The server to use. ClientFailed has advice if none is configured. */
export const accessOf = async (options: AccessOptions): Promise<Access> => {
  const { as } = options
  const other = await named(options)
  if (other !== undefined && as !== undefined) {
    const what = `--as is for a local development server, but ${other.url} is configured`
    throw failure("usage", what, "omit --as, or the profile or variable that names the server")
  }
  const access = other ?? (await fromDataFolder(options))
  if (access !== undefined) return access
  throw failure(
    "usage",
    `No server is configured, and none runs on ${options.data_dir}`,
    "start one with npm start, or set ALMANAC_URL and ALMANAC_TOKEN, OS_CLOUD or OS_AUTH_URL",
  )
}
