/**
 * Registers this service in Keystone's catalogue, or updates the entry.
 *
 * Source: document 2 §5; decisions of document 2, identity, secrets, shares.
 */
import { Effect, Schema } from "effect"
import { type Answer, type Call, decoded, unexpected } from "#adapters/keystone/http.ts"
import { KeystoneSession, keystoneCall } from "#adapters/keystone/session.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"

/** The desired endpoint. */
export interface Entry {
  readonly type: string
  /** The interface, for example `public`. */
  readonly side: string
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
const asked = Effect.fnUntraced(function* (
  method: Call["method"],
  path: string,
  status: number,
  body?: object,
) {
  const session = yield* KeystoneSession
  const answer = yield* session.askAsService(
    keystoneCall(session, method, path, body === undefined ? {} : { body }),
  )
  if (answer.status === 403) return yield* forbidden
  return answer.status === status ? answer : yield* unexpected(keystone, answer)
})

const forbidden = new BackendUnavailable({
  detail: "Keystone does not let the service user change the catalogue: it needs the role admin.",
})

const read = <A>(
  schema: Schema.Decoder<A>,
  answer: Effect.Effect<Answer, BackendUnavailable, KeystoneSession>,
) => Effect.flatMap(answer, (said) => decoded(schema, keystone, said))

const serviceId = Effect.fnUntraced(function* (type: string) {
  const query = new URLSearchParams({ type })
  const { services } = yield* read(Services, asked("GET", `/services?${query}`, 200))
  const [known] = services
  if (known !== undefined) return known.id
  const body = { service: { type, name, enabled: true } }
  return (yield* read(Service, asked("POST", "/services", 201, body))).service.id
})

/** Registers the endpoint. Returns what it did; an up-to-date entry is left unchanged. */
export const register = Effect.fnUntraced(function* ({ type, side, region, url }: Entry) {
  const service_id = yield* serviceId(type)
  const place = region === "" ? {} : { region_id: region }
  const query = new URLSearchParams({ service_id, interface: side, ...place })
  const { endpoints } = yield* read(Endpoints, asked("GET", `/endpoints?${query}`, 200))
  const [known] = endpoints
  if (known === undefined) {
    const endpoint = { service_id, interface: side, url, ...place }
    yield* asked("POST", "/endpoints", 201, { endpoint })
    return "created"
  }
  if (known.url === url) return "unchanged"
  yield* asked("PATCH", `/endpoints/${known.id}`, 200, { endpoint: { url } })
  return "updated"
})
