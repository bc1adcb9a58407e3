/**
 * `profiles.toml`: the servers that a person works with, and how to sign in to each.
 *
 * Each profile is a TOML table with a URL and a token, or with a Keystone. A file with secrets must
 * not be accessible to other users.
 */
import { homedir } from "node:os"
import { join } from "node:path"
import { failure } from "#cli/client/failure.ts"
import { isObject, type Json } from "#cli/client/json.ts"
import { findText, tooPermissive } from "#cli/client/private-file.ts"

/** Keys of a profile; `os_...` are the variables of OpenStack's clients in lower case. */
const names = new Set([
  "url",
  "token",
  "token_file",
  "ca",
  "os_auth_url",
  "os_token",
  "os_username",
  "os_user_id",
  "os_password",
  "os_user_domain_name",
  "os_user_domain_id",
  "os_project_name",
  "os_project_id",
  "os_project_domain_name",
  "os_project_domain_id",
  "os_domain_name",
  "os_domain_id",
  "os_application_credential_id",
  "os_application_credential_name",
  "os_application_credential_secret",
  "os_system_scope",
  "os_region_name",
  "os_interface",
  "os_endpoint",
  "os_cacert",
  "os_cloud",
])
const secrets = /^(token|os_token|os_password|os_application_credential_secret)$/

export type Profile = Readonly<Record<string, string>>

/** The file's path: ALMANAC_PROFILES, or almanac/profiles.toml in the configuration folder. */
export const profilesPath = (env: NodeJS.ProcessEnv) =>
  env.ALMANAC_PROFILES ||
  join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "almanac", "profiles.toml")

const parsed = async (path: string, text: string): Promise<Json> => {
  const { parse } = await import("smol-toml")
  try {
    // profileOf accepts only strings, so TOML values beyond JSON are rejected there.
    return parse(text) as Json
  } catch (cause) {
    // The rest of the parser's message quotes the file, which may hold a token.
    const [reason = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n")
    throw failure("usage", `${path}: ${reason}`)
  }
}

const profileOf = (path: string, name: string, table: Json): Profile => {
  if (!isObject(table)) throw failure("usage", `${path}: ${name} must be a table [${name}]`)
  for (const [key, value] of Object.entries(table)) {
    if (!names.has(key)) throw failure("usage", `${path}: [${name}] has an unknown key ${key}`)
    if (typeof value !== "string")
      throw failure("usage", `${path}: [${name}] ${key} must be a string`)
  }
  // Checked above.
  return table as Profile
}

/**
 * The profile of this name, or `default` without a name. Undefined if no name was given and there
 * is no default. ClientFailed if the file is invalid or exposed.
 */
export const findProfile = async (
  env: NodeJS.ProcessEnv,
  name: string | undefined,
): Promise<Profile | undefined> => {
  const path = profilesPath(env)
  const found = await findText(path)
  if (found === undefined) {
    if (name === undefined) return undefined
    throw failure("usage", `Profile ${name} does not exist, because ${path} does not exist`)
  }
  const all = await parsed(path, found.text)
  const tables = isObject(all) ? all : {}
  const holds_secrets = Object.values(tables).some(
    (table) => isObject(table) && Object.keys(table).some((key) => secrets.test(key)),
  )
  if (holds_secrets && found.is_exposed) throw tooPermissive(path)
  const table = tables[name ?? "default"]
  if (table !== undefined) return profileOf(path, name ?? "default", table)
  if (name === undefined) return undefined
  const known = Object.keys(tables).join(", ") || "none"
  throw failure("usage", `${path} has no profile ${name}; it has: ${known}`)
}
