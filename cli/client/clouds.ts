/**
 * Reads `clouds.yaml`, the configuration of OpenStack's clients, as openstacksdk does.
 *
 * Source: openstacksdk, "Configuring OpenStack SDK Applications": search path, first existing file,
 * `secure.yaml`, `auth` and the keys next to it.
 */
import { homedir } from "node:os"
import { join } from "node:path"
import { failure } from "#cli/client/failure.ts"
import { isList, isObject, type Json, type JsonObject } from "#cli/client/json.ts"
import { findText, tooPermissive } from "#cli/client/private-file.ts"

/** One cloud: variables of OpenStack's clients in lower case, without `os_`. */
export type Cloud = Readonly<Record<string, string>>

const endings = [".yaml", ".yml", ".json"]

const homeOf = (env: NodeJS.ProcessEnv) => env.HOME || homedir()

/** Search path of a file of this name. */
const searchPath = (env: NodeJS.ProcessEnv, name: string, own: string | undefined) => {
  const home = env.XDG_CONFIG_HOME || join(homeOf(env), ".config")
  const folders = ["", join(home, "openstack"), "/etc/openstack"]
  const usual = folders.flatMap((folder) => endings.map((ending) => join(folder, name + ending)))
  return own ? [own, ...usual] : usual
}

interface Found {
  readonly path: string
  readonly clouds: JsonObject
  readonly is_exposed: boolean
}

/** The first existing file; `own` is the path from a variable and comes first. */
const find = async (
  env: NodeJS.ProcessEnv,
  name: string,
  own: string | undefined,
): Promise<Found | undefined> => {
  for (const path of searchPath(env, name, own)) {
    const found = await findText(path)
    if (found === undefined) continue
    return { path, is_exposed: found.is_exposed, clouds: await cloudsIn(path, found.text) }
  }
  return undefined
}

/**
 * Parses the clouds. Omits the parser's own messages, because they quote the file, which may hold a
 * password.
 */
const cloudsIn = async (path: string, text: string): Promise<JsonObject> => {
  const { LineCounter, parseDocument } = await import("yaml")
  const lineCounter = new LineCounter()
  // This schema has only strings, lists and maps: a password of digits stays a string.
  const document = parseDocument(text, {
    schema: "failsafe",
    merge: true,
    prettyErrors: false,
    lineCounter,
  })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault !== undefined) {
    const { line } = lineCounter.linePos(fault.pos[0])
    const reason = fault.code.toLowerCase().replaceAll("_", " ")
    throw failure("usage", `${path}: line ${line} is not supported YAML: ${reason}`)
  }
  let file: Json
  try {
    file = document.toJS() as Json // By the schema above.
  } catch {
    throw failure("usage", `${path}: an alias has no anchor, or there are too many aliases`)
  }
  const clouds = isObject(file) ? file.clouds : undefined
  return isObject(clouds) ? clouds : {}
}

const secrets = new Set(["password", "token", "application_credential_secret"])

/** Older names of the same keys. */
const legacy_names: Readonly<Record<string, string>> = {
  tenant_id: "project_id",
  tenant_name: "project_name",
  user_name: "username",
}

const auth_types = /^(v3)?(password|token|applicationcredential)$/

/** Keys next to `auth` that this client uses. */
const top_level_names = ["region_name", "interface"]

const textOf = (value: Json | undefined) => (typeof value === "string" ? value : undefined)

/** Expands a leading `~/`. */
const expandHome = (path: string | undefined, home: string) => path?.replace(/^~(?=\/)/, () => home)

/** Variables from `auth` and the keys next to it. */
const variablesOf = (cloud: JsonObject, home: string): Cloud => {
  const auth = isObject(cloud.auth) ? cloud.auth : {}
  const regions = isList(cloud.regions) ? cloud.regions : []
  const [region] = regions.map((one) => textOf(isObject(one) ? one.name : one))
  const named = [
    ...Object.entries(auth).map(
      ([name, value]) => [legacy_names[name] ?? name, textOf(value)] as const,
    ),
    ...top_level_names.map((name) => [name, textOf(cloud[name])] as const),
    ["cacert", expandHome(textOf(cloud.cacert), home)] as const,
    ["endpoint", textOf(cloud.share_protection_endpoint_override)] as const,
  ]
  const overrides = named.filter((one): one is [string, string] => one[1] !== undefined)
  return { ...(region !== undefined && { region_name: region }), ...Object.fromEntries(overrides) }
}

const refuseUnsupported = (path: string, name: string, cloud: JsonObject) => {
  const type = textOf(cloud.auth_type)
  if (type !== undefined && !auth_types.test(type)) {
    throw failure(
      "usage",
      `${path}: ${name} signs in with ${type}, which this client does not support`,
    )
  }
  if (/^(false|no|off)$/i.test(textOf(cloud.verify) ?? "")) {
    const what = `${path}: ${name} disables certificate verification, which is not supported`
    throw failure("usage", what, "set cacert to the certificate of the authority")
  }
  if (cloud.profile !== undefined) {
    const what = `${path}: ${name} uses a vendor profile, which this client does not support`
    throw failure("usage", what, "set auth.auth_url")
  }
}

const holdsSecret = (cloud: Json | undefined) =>
  isObject(cloud) && isObject(cloud.auth) && Object.keys(cloud.auth).some((key) => secrets.has(key))

/**
 * The cloud of this name. ClientFailed if it does not exist, if the file is invalid, or if it holds
 * a secret that other users can read.
 */
export const findCloud = async (env: NodeJS.ProcessEnv, name: string): Promise<Cloud> => {
  const found = await find(env, "clouds", env.OS_CLIENT_CONFIG_FILE)
  if (found === undefined) {
    const searched = searchPath(env, "clouds", env.OS_CLIENT_CONFIG_FILE).filter((path) =>
      path.endsWith("yaml"),
    )
    throw failure(
      "usage",
      `OS_CLOUD is ${name}, but none of these files exists: ${searched.join(", ")}`,
    )
  }
  const secure = await find(env, "secure", env.OS_CLIENT_SECURE_FILE)
  for (const file of [found, secure]) {
    if (file?.is_exposed === true && holdsSecret(file.clouds[name])) throw tooPermissive(file.path)
  }
  const cloud = found.clouds[name]
  if (!isObject(cloud)) {
    const known = Object.keys(found.clouds).join(", ") || "none"
    throw failure("usage", `${found.path} has no cloud ${name}; it has: ${known}`)
  }
  refuseUnsupported(found.path, name, cloud)
  const more = secure?.clouds[name]
  const home = homeOf(env)
  const all = { ...variablesOf(cloud, home), ...(isObject(more) && variablesOf(more, home)) }
  if (all.auth_url === undefined) throw failure("usage", `${found.path}: ${name} has no auth_url`)
  return all
}
