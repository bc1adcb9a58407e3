/** Two tenants in one domain, an operator, the service users, the catalogue and the share types. */
import { Schema } from "effect"
import { admin_password, baseOf, type Place, service_password } from "./configuration.ts"

const Ids = Schema.Record(Schema.String, Schema.String)

/** Ids by name of the initially seeded resources. */
export const Seed = Schema.Struct({ domain: Schema.String, projects: Ids, users: Ids, roles: Ids })
export type Seed = typeof Seed.Type

/** Tests read only fields that they know to exist. */
export type Json = ReturnType<typeof JSON.parse>

/** The response to a request. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

/** Sends one request as a test or a person; a status of 400 and above is also a valid response. */
export const ask = async (
  method: string,
  url: string,
  {
    token,
    body,
    headers,
  }: { token?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> => {
  const response = await fetch(url, {
    method,
    headers: {
      "content-type": "application/json",
      "x-openstack-manila-api-version": "2.65",
      ...(token !== undefined && { "x-auth-token": token }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const is_json = response.headers.get("content-type")?.includes("json") ?? false
  return {
    status: response.status,
    headers: response.headers,
    body: is_json ? JSON.parse(text) : text,
  }
}

const must = async (...args: Parameters<typeof ask>) => {
  const answer = await ask(...args)
  if (answer.status >= 400) {
    throw new Error(`${args[0]} ${args[1]}: ${answer.status} ${JSON.stringify(answer.body)}`)
  }
  return answer
}

/** The user of a token, and its scope. */
export interface Login {
  readonly user: { readonly id: string } | { readonly name: string; readonly domain: object }
  readonly password: string
  readonly scope: object | "unscoped"
}

/** A fresh token for a user, by password. */
export const login = async (base: string, { user, password, scope }: Login): Promise<string> => {
  const identity = { methods: ["password"], password: { user: { ...user, password } } }
  const { headers } = await must("POST", `${base}/v3/auth/tokens`, {
    body: { auth: { identity, scope } },
  })
  return headers.get("x-subject-token") ?? ""
}

/** The cloud administrator's token. */
export const adminLogin = (base: string) =>
  login(base, {
    user: { name: "admin", domain: { id: "default" } },
    password: admin_password,
    scope: { project: { name: "admin", domain: { id: "default" } } },
  })

export const passwordOf = (name: string) =>
  ["svcprotect", "barbican", "manila"].includes(name) ? service_password : `${name}-pw`

/** Seeds a newly bootstrapped Keystone. */
export const seed = async (place: Place): Promise<Seed> => {
  const base = baseOf(place, "keystone")
  const token = await adminLogin(base)
  const make = async (path: string, kind: string, body: object): Promise<string> =>
    (await must("POST", `${base}/v3${path}`, { token, body: { [kind]: body } })).body[kind].id
  const { body } = await must("GET", `${base}/v3/roles`, { token })
  const roles = new Map<string, string>(body.roles.map((role: Json) => [role.name, role.id]))
  for (const name of ["service", "creator", "svc_domain_owner", "svc_admin"]) {
    roles.set(name, await make("/roles", "role", { name }))
  }
  const domain = await make("/domains", "domain", { name: "acme" })
  const projects = new Map<string, string>()
  for (const [name, domain_id] of [
    ["tenant-a", domain],
    ["tenant-b", domain],
    ["service", "default"],
  ]) {
    projects.set(name ?? "", await make("/projects", "project", { name, domain_id }))
  }
  const users = new Map<string, string>()
  const grant = async (
    kind: "projects" | "domains",
    on: string,
    user: string,
    ...held: Array<string>
  ) => {
    for (const name of held) {
      const path = `/${kind}/${on}/users/${users.get(user)}/roles/${roles.get(name)}`
      await must("PUT", `${base}/v3${path}`, { token })
    }
  }
  for (const name of ["alice", "bob", "owner", "operator", "svcprotect", "barbican", "manila"]) {
    const is_tenant = ["alice", "bob", "owner"].includes(name)
    const user = { name, domain_id: is_tenant ? domain : "default", password: passwordOf(name) }
    users.set(name, await make("/users", "user", user))
  }
  const [a = "", b = "", service = ""] = [...projects.values()]
  for (const project of [a, b]) {
    for (const user of ["alice", "bob"]) await grant("projects", project, user, "member", "creator")
  }
  await grant("domains", domain, "owner", "svc_domain_owner")
  await grant("projects", service, "operator", "admin", "svc_admin")
  for (const user of ["barbican", "manila"]) await grant("projects", service, user, "service")
  // The `admin` role lets it see the shares of all projects in Manila.
  await grant("projects", service, "svcprotect", "service", "admin")
  await catalogue(place, make)
  return {
    domain,
    projects: Object.fromEntries(projects),
    users: Object.fromEntries(users),
    roles: Object.fromEntries(roles),
  }
}

const catalogue = async (
  place: Place,
  make: (path: string, kind: string, body: object) => Promise<string>,
) => {
  for (const [type, url] of [
    ["key-manager", baseOf(place, "barbican")],
    ["sharev2", `${baseOf(place, "manila")}/v2`],
  ]) {
    const service_id = await make("/services", "service", { type, name: type })
    for (const side of ["public", "internal", "admin"]) {
      const endpoint = { service_id, interface: side, region_id: "RegionOne", url }
      await make("/endpoints", "endpoint", endpoint)
    }
  }
}

const snapshots = {
  snapshot_support: "True",
  create_share_from_snapshot_support: "True",
  mount_snapshot_support: "True",
}
const share_types = {
  default: snapshots,
  unmountable: { ...snapshots, mount_snapshot_support: "False" },
  plain: {},
}
/** A share type, named after the capabilities of its shares. */
export type ShareType = keyof typeof share_types

/** Creates the share types. Manila has none at first. */
export const seedShareTypes = async (place: Place) => {
  const token = await adminLogin(baseOf(place, "keystone"))
  for (const [name, specs] of Object.entries(share_types)) {
    const share_type = {
      name,
      "share_type_access:is_public": true,
      extra_specs: { driver_handles_share_servers: "False", share_backend_name: "ALPHA", ...specs },
    }
    await must("POST", `${baseOf(place, "manila")}/v2/types`, { token, body: { share_type } })
  }
}
