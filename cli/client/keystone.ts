/**
 * Signs in to Keystone v3 with the variables of OpenStack's clients.
 *
 * Source: document 2 §5; the Identity API v3, "Password authentication with scoped authorization",
 * "Authenticating with an application credential".
 */
import type { Access } from "#cli/client/access.ts"
import { failure } from "#cli/client/failure.ts"
import { httpOf, jsonBody } from "#cli/client/http.ts"
import { isList, isObject, type Json, type JsonObject, memberAt, textAt } from "#cli/client/json.ts"

const catalog_type = "share-protection"

/** Looks up a variable by its name without `os_`. */
export type OpenStack = (name: string) => string | undefined

const named = (os: OpenStack, what: string): JsonObject | undefined => {
  const id = os(`${what}_id`)
  if (id !== undefined) return { id }
  const name = os(`${what}_name`)
  return name === undefined ? undefined : { name }
}

const identityOf = (os: OpenStack): JsonObject => {
  const secret = os("application_credential_secret")
  const credential = named(os, "application_credential")
  const id = os("user_id")
  const name = os("username")
  const domain = named(os, "user_domain") ?? { id: "default" }
  const user = id === undefined ? { ...(name !== undefined && { name, domain }) } : { id }
  if (secret !== undefined && credential !== undefined) {
    const application_credential = {
      ...credential,
      secret,
      ...("id" in credential ? {} : { user }),
    }
    return { methods: ["application_credential"], application_credential }
  }
  const password = os("password")
  if (password !== undefined && Object.keys(user).length > 0) {
    return { methods: ["password"], password: { user: { ...user, password } } }
  }
  const token = os("token")
  if (token !== undefined) return { methods: ["token"], token: { id: token } }
  throw failure(
    "usage",
    "OS_AUTH_URL is set, but no password, application credential or token",
    "set OS_USERNAME and OS_PASSWORD, OS_APPLICATION_CREDENTIAL_ID and _SECRET, or OS_TOKEN",
  )
}

/** The scope to request; an application credential implies its own. */
const scopeOf = (os: OpenStack, identity: JsonObject): JsonObject => {
  if ("application_credential" in identity) return {}
  const project = named(os, "project")
  if (project !== undefined) {
    const domain = named(os, "project_domain") ?? { id: "default" }
    return { scope: { project: "id" in project ? project : { ...project, domain } } }
  }
  const domain = named(os, "domain")
  if (domain !== undefined) return { scope: { domain } }
  return os("system_scope") === "all" ? { scope: { system: { all: true } } } : {}
}

const endpointIn = (token: Json | undefined, os: OpenStack) => {
  const catalog = memberAt(token, "catalog")
  const entry = (isList(catalog) ? catalog : []).find((one) => textAt(one, "type") === catalog_type)
  const endpoints = isObject(entry) && isList(entry.endpoints) ? entry.endpoints : []
  const side = (os("interface") ?? "public").replace("URL", "")
  const region = os("region_name")
  const found = endpoints.find(
    (one) =>
      textAt(one, "interface") === side &&
      (region === undefined || region === (textAt(one, "region_id") ?? textAt(one, "region"))),
  )
  return textAt(found, "url")?.replace(/\/v1\/?$/, "")
}

/** Lifetime of the token in ms, from Keystone's two times, because our clock may be wrong. */
const lifetimeOf = (token: Json | undefined) => {
  const [from, to] = ["issued_at", "expires_at"].map((name) =>
    Date.parse(textAt(token, name) ?? ""),
  )
  const ms = (to ?? Number.NaN) - (from ?? Number.NaN)
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms
}

/**
 * Requests a token. Returns it with its lifetime in ms and the catalogue's endpoint of share
 * protection. ClientFailed has advice.
 */
export const signIn = async (os: OpenStack, tls: Access["tls"], signal: AbortSignal) => {
  const auth_url = os("auth_url") ?? ""
  const identity = identityOf(os)
  const http = httpOf({
    url: auth_url.replace(/\/+$/, "").replace(/\/v3$/, ""),
    tls,
    headers: async () => ({}),
    sign_in: "check OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME and their domains",
    start: "check OS_AUTH_URL",
  })
  try {
    const { body, headers } = await http.json({
      method: "POST",
      path: "/v3/auth/tokens",
      need: "none",
      signal,
      ...jsonBody({ auth: { identity, ...scopeOf(os, identity) } }),
    })
    const token = headers["x-subject-token"]
    if (typeof token !== "string") {
      throw failure("failed", `${auth_url} returned no token`, "check that it is a Keystone v3")
    }
    const issued = memberAt(body, "token")
    return { token, lifetime_ms: lifetimeOf(issued), endpoint: endpointIn(issued, os) }
  } finally {
    http.close()
  }
}
