/**
 * Registers this service in Keystone's catalogue, or updates the entry.
 *
 * Source: document 2 §5; decisions of document 2, identity, secrets, shares.
 */
import { Effect, Schema } from "effect"
import {
  type Call,
  type CloudResponse,
  decodeResponse,
  unexpected,
} from "#adapters/keystone/http.ts"
import { KeystoneSession, keystoneCall } from "#adapters/keystone/session.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"

/** The desired endpoint. */
export interface CatalogEntry {
  readonly type: string
  /** The interface, for example `public`. */
  readonly interface_name: string
  /**
   * If empty, an endpoint is created without a region, and an existing one matches in any region.
   */
  readonly region: string
  readonly url: string
}

const keystone = { service: "Keystone" } as const

/** The service's name in the catalogue; clients search by type. */
const name = "almanac"

const Services = Schema.Struct({
  services: Schema.Array(Schema.Struct({ id: Schema.String })),
})
const Service = Schema.Struct({ service: Schema.Struct({ id: Schema.String }) })
const Endpoints = Schema.Struct({
  endpoints: Schema.Array(Schema.Struct({ id: Schema.String, url: Schema.String })),
})

/** Sends a request as the service user; fails if it is not allowed to, or on any other status. */
const request = Effect.fnUntraced(function* (
  method: Call["method"],
  path: string,
  status: number,
  body?: object,
) {
  const session = yield* KeystoneSession
  const response = yield* session.sendAsService(
    keystoneCall(session, method, path, body === undefined ? {} : { body }),
  )
  if (response.status === 403) return yield* forbidden
  return response.status === status ? response : yield* unexpected(keystone, response)
})

const forbidden = new BackendUnavailable({
  detail:
    "Keystone does not allow the service user to change the catalogue: it needs the role admin.",
})

const read = <A>(
  schema: Schema.Decoder<A>,
  sending: Effect.Effect<CloudResponse, BackendUnavailable, KeystoneSession>,
) => Effect.flatMap(sending, (response) => decodeResponse(schema, keystone, response))

const serviceId = Effect.fnUntraced(function* (type: string) {
  const query = new URLSearchParams({ type })
  const { services } = yield* read(Services, request("GET", `/services?${query}`, 200))
  const [existing] = services
  if (existing !== undefined) return existing.id
  const body = { service: { type, name, enabled: true } }
  return (yield* read(Service, request("POST", "/services", 201, body))).service.id
})

/** Registers the endpoint. Returns what it did; an up-to-date entry is left unchanged. */
export const register = Effect.fnUntraced(function* ({
  type,
  interface_name,
  region,
  url,
}: CatalogEntry) {
  const service_id = yield* serviceId(type)
  const region_field = region === "" ? {} : { region_id: region }
  const query = new URLSearchParams({ service_id, interface: interface_name, ...region_field })
  const { endpoints } = yield* read(Endpoints, request("GET", `/endpoints?${query}`, 200))
  const [known] = endpoints
  if (known === undefined) {
    const endpoint = { service_id, interface: interface_name, url, ...region_field }
    yield* request("POST", "/endpoints", 201, { endpoint })
    return "created"
  }
  if (known.url === url) return "unchanged"
  yield* request("PATCH", `/endpoints/${known.id}`, 200, { endpoint: { url } })
  return "updated"
})
