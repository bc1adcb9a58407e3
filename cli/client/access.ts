/**
 * Which server is asked, and as whom: a profile, the environment, or the development server of the
 * data folder, in this order. Secrets come from files and variables, never by flag.
 *
 * Source: decisions, "verbs beside a running server", "development principals"; decision 0020.
 */
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { findCloud } from "#cli/client/clouds.ts"
import { failure } from "#cli/client/failure.ts"
import { fromJson, isObject, type Json, textAt } from "#cli/client/json.ts"
import { type OpenStack, signIn } from "#cli/client/keystone.ts"
import type { Need } from "#cli/client/operation.ts"
import { byItself, type Trusted } from "#cli/client/own-certificate.ts"
import { findText, readToken } from "#cli/client/private-text.ts"
import { findProfile, profilesPath } from "#cli/client/profile.ts"

export interface Access {
  readonly url: string
  readonly tls: Trusted
  /** The headers by which a caller is known. */
  readonly headers: (need: Need, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>
  /** What to do where the token is not taken, and where nothing listens. */
  readonly sign_in: string
  readonly start: string
}

export interface Asking {
  readonly env: NodeJS.ProcessEnv
  readonly profile?: string | undefined
  /** A principal of dev-credentials.json, `tenant_b` for example. */
  readonly as?: string | undefined
  /** The data folder of a server on this machine, and its certificate as the settings name it. */
  readonly data_dir: string
  readonly tls_cert?: string | undefined
  readonly signal: AbortSignal
}

const remote_start = "check that the server runs, and its address"

const authorityOf = async (path: string | undefined): Promise<Access["tls"]> => {
  if (path === undefined || path === "") return {}
  const ca = await readFile(path).catch((cause: Error) => {
    throw failure("usage", `${path} cannot be read: ${cause.message}`)
  })
  return { ca }
}

const addressOf = (url: string, from: string) => {
  const is_http = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
  if (!is_http) throw failure("usage", `${from} is no http:// or https:// address`)
  const { username, password } = new URL(url)
  // It would be printed with the address.
  if (`${username}${password}` !== "") throw failure("usage", `${from} has a password in it`)
  return new URL(url).href.replace(/\/+$/, "").replace(/\/v1$/, "")
}

/** With one token for all. */
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
        ? `give a token: ${from}`
        : `put a token that is good into ${from}; on the server: almanac token issue --help`,
  }
}

/** A token of Keystone's is replaced so long before its end, in ms: a request may take as long. */
const renewal_ms = 60_000

/** With a token of Keystone's, and another when it ends: following and waiting may take longer. */
const withKeystone = async (
  os: (name: string) => string | undefined,
  given_url: string | undefined,
  signal: AbortSignal,
): Promise<Access> => {
  const tls = await authorityOf(os("cacert"))
  // Refused here, where it is not printed.
  addressOf(os("auth_url") ?? "", "OS_AUTH_URL")
  const signed = async (until: AbortSignal) => {
    const asked_ms = performance.now()
    const { lifetime_ms, ...issued } = await signIn(os, tls, until)
    return { ...issued, renewed_ms: asked_ms + lifetime_ms - renewal_ms }
  }
  let current = await signed(signal)
  const url = given_url ?? os("endpoint") ?? current.endpoint
  if (url === undefined) {
    const what = "The catalogue of Keystone has no service share-protection"
    throw failure("usage", what, "set ALMANAC_URL, or: almanac catalog register --help")
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

/** The variables of a cloud of clouds.yaml; of where it is asked, the caller may say otherwise. */
const inCloud = async (env: NodeJS.ProcessEnv, name: string, os: OpenStack): Promise<OpenStack> => {
  const cloud = await findCloud(env, name)
  const chosen = new Set(["region_name", "interface"])
  return (name) => (chosen.has(name) ? os(name) : undefined) ?? cloud[name]
}

const fromProfile = async (profile: Record<string, string>, { env, signal }: Asking) => {
  const os = (name: string) => profile[`os_${name}`]
  const url = profile.url === undefined ? undefined : addressOf(profile.url, "url")
  const cloud = os("cloud")
  if (cloud !== undefined) return await withKeystone(await inCloud(env, cloud, os), url, signal)
  if (os("auth_url") !== undefined) return await withKeystone(os, url, signal)
  const path = profilesPath(env)
  if (url === undefined) {
    throw failure("usage", `${path}: the profile has none of url, os_cloud and os_auth_url`)
  }
  const token =
    profile.token ??
    (profile.token_file === undefined ? undefined : await readToken(profile.token_file)) ??
    os("token")
  return withToken(url, await authorityOf(profile.ca), token, `token or token_file in ${path}`)
}

const fromEnvironment = async ({ env, signal }: Asking): Promise<Access | undefined> => {
  const os = (name: string) => env[`OS_${name.toUpperCase()}`] || undefined
  const cloud = os("cloud")
  // The endpoint of other variables may be another cloud's, and is not shown this one's token.
  const given = env.ALMANAC_URL || (cloud === undefined ? os("endpoint") : undefined)
  const url = given === undefined ? undefined : addressOf(given, "ALMANAC_URL")
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

/** Which principal of dev-credentials.json has what an operation needs. */
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
    throw failure("usage", `${path} is no JSON`)
  }
}

const fromDataFolder = async (asking: Asking): Promise<Access | undefined> => {
  const { data_dir, as, tls_cert } = asking
  const instance = await jsonIn(join(data_dir, "run", "instance.json"))
  const url = textAt(instance, "url")
  if (url === undefined) return undefined
  const path = join(data_dir, "dev-credentials.json")
  const credentials = await jsonIn(path)
  const tokenOf = (name: string) => textAt(credentials, `${name}.token`)
  if (as !== undefined && tokenOf(as) === undefined) {
    const known = isObject(credentials) ? Object.keys(credentials).filter(tokenOf).join(", ") : ""
    throw failure("usage", `${path} has no principal ${as}; it has ${known || "none"}`)
  }
  // What the server says of itself, which was perhaps told it alone; an older one does not.
  const cert = textAt(instance, "tls_cert") ?? tls_cert
  const tls = url.startsWith("https:") ? await authorityOf(cert) : {}
  return {
    url,
    start: "start it: npm start",
    tls: tls.ca === undefined ? {} : byItself(tls.ca),
    headers: async (need) => {
      const token = need === "none" ? undefined : tokenOf(as ?? principals[need])
      return token === undefined ? {} : { authorization: `Bearer ${token}` }
    },
    sign_in:
      credentials === undefined
        ? "with an identity of its own a server has no development tokens: ALMANAC_URL and _TOKEN"
        : `the tokens in ${path} are not this server's: restart it`,
  }
}

/** The server that a profile or the environment names. */
const named = async (asking: Asking): Promise<Access | undefined> => {
  const { env, profile } = asking
  const asked = profile ?? (env.ALMANAC_PROFILE || undefined)
  const fromFile = async () => {
    const found = await findProfile(env, asked)
    return found === undefined ? undefined : await fromProfile(found, asking)
  }
  if (asked !== undefined) return await fromFile()
  return (await fromEnvironment(asking)) ?? (await fromFile())
}

/** The server that is asked. ClientFailed, with what to do, where none is named. */
export const accessOf = async (asking: Asking): Promise<Access> => {
  const { as } = asking
  const other = await named(asking)
  if (other !== undefined && as !== undefined) {
    const what = `--as is of a development server beside this one, and ${other.url} is asked`
    throw failure("usage", what, "leave it out, or the profile or variable that names the server")
  }
  const access = other ?? (await fromDataFolder(asking))
  if (access !== undefined) return access
  throw failure(
    "usage",
    `No server is named, and none runs on ${asking.data_dir}`,
    "start one with npm start, or set ALMANAC_URL and ALMANAC_TOKEN, OS_CLOUD, or OS_AUTH_URL",
  )
}
