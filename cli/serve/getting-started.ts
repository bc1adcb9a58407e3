/** The last lines of a start: the addresses to open next, and a first request. */
import { Struct } from "effect"
import { developmentCredentialsPath } from "#adapters/identity/development-credentials.ts"
import type { Settings } from "#schemas/settings.ts"

/** A first request to try per service, with its principal; the first enabled one is printed. */
const first_requests = {
  "blob-storage": { path: "/v1/cluster/state", principal: "blob" },
  "share-protection": { path: "/v1/jobs", principal: "tenant" },
  "capital-pressure": { path: "/api/dashboard", principal: "admin" },
  "carrier-search": { path: "/api/search/sources", principal: "admin" },
  "plant-disease": { path: "/predict/model", principal: "admin" },
} as const

/** A curl command that works as printed; its only requirement is Node. */
const curl = ({ data, services, roles }: Settings, url: string) => {
  const enabled = services.filter((name) => name !== "blob-storage" || roles.includes("blob"))
  const service = Struct.keys(first_requests).find((name) => enabled.includes(name))
  if (service === undefined) return []
  const file = JSON.stringify(developmentCredentialsPath(data.dir))
  const { path, principal } = first_requests[service]
  const token = `$(node -p 'require(${file}).${principal}.token')`
  return [`curl -H "Authorization: Bearer ${token}" ${url}${path}`]
}

const label_width = 15

/** Lines that a gateway prints once it is ready. `almanac cluster` omits them for its nodes. */
export const gettingStarted = (settings: Settings, url: string): ReadonlyArray<string> => {
  const line = (label: string, value: string) => `${`${label}:`.padEnd(label_width)}${value}`
  const is_embedded = settings.identity.kind === "embedded"
  return [
    ...(settings.services.includes("capital-pressure") ? [line("Dashboard", `${url}/`)] : []),
    line("Console", `${url}/console`),
    line("API reference", `${url}/docs`),
    line("Events", `${url}/v1/events`),
    ...(is_embedded ? [line("Credentials", developmentCredentialsPath(settings.data.dir))] : []),
    ...(is_embedded ? curl(settings, url) : []),
  ]
}
