/**
 * The secrets manager Barbican, accessed only with tokens of tenants' trusts, never with our own.
 *
 * Source: document 2 §1 Secrets; decisions of document 2, identity, secrets, shares.
 */
import { Effect, Layer, Redacted, Schema } from "effect"
import { type Delegation, denials } from "#actors/share-protection/ports/trusts.ts"
import { secret_denied, secretIdOf, Vault } from "#actors/share-protection/ports/vault.ts"
import {
  type Call,
  type CloudResponse,
  decodeResponse,
  unexpected,
} from "#adapters/keystone/http.ts"
import { KeystoneSession, keystoneCall } from "#adapters/keystone/session.ts"
import { TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

type Session = KeystoneSession["Service"]

/** Secrets in the Barbican of Keystone's catalogue. */
export const vaultBarbican = Layer.effect(
  Vault,
  Effect.map(KeystoneSession, (s) => vaultOf(s)),
)

const barbican = { service: "Barbican" } as const
const octets = "application/octet-stream"

const Stored = Schema.Struct({ secret_ref: Schema.String })
const SecretList = Schema.Struct({
  secrets: Schema.Array(
    Schema.Struct({ name: Schema.String, status: Schema.String, secret_ref: Schema.String }),
  ),
})

/** Maximum secrets of one name to search; the newest comes first. */
const listed_max = 10

const denied = Effect.fail(new TrustAccessDenied({ detail: secret_denied }))

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Sends a request to Barbican. A 503 means that Barbican cannot reach Keystone or that Keystone
 * rejects the token; Keystone is queried to find out which.
 */
const request = Effect.fnUntraced(function* (
  session: Session,
  { token }: Delegation,
  { path, ...call }: Pick<Call, "method" | "body" | "headers"> & { readonly path: string },
) {
  const base = (yield* session.endpoint("key-manager")).replace(/\/v1$/, "")
  const response = yield* session.send({ ...barbican, ...call, url: `${base}/v1${path}`, token })
  if (response.status === 401) return yield* new TrustAccessDenied({ detail: denials.gone })
  if (response.status === 503) yield* verifyToken(session, token)
  return response
})

/** Fails if Keystone rejects this token. */
const verifyToken = Effect.fnUntraced(function* (session: Session, subject: Delegation["token"]) {
  const call = keystoneCall(session, "GET", "/auth/tokens?nocatalog", { subject })
  const { status } = yield* session.sendAsService(call)
  if (status === 403) return yield* new TrustAccessDenied({ detail: denials.powerless })
  if (status === 404) return yield* new TrustAccessDenied({ detail: denials.gone })
})

/** As text unless it begins or ends with whitespace, which Barbican would strip. */
const encodePayload = (payload: string) =>
  payload.trim() === payload
    ? { payload, payload_content_type: "text/plain" }
    : {
        payload: Buffer.from(payload).toString("base64"),
        payload_content_type: octets,
        payload_content_encoding: "base64",
      }

const isDenied = ({ status }: CloudResponse) => status === 403 || status === 404

const vaultOf = (session: Session): Vault["Service"] => ({
  read: Effect.fnUntraced(function* (by, href) {
    const id = secretIdOf(href)
    if (id === undefined) return yield* denied
    const path = `/secrets/${id}/payload`
    // Barbican returns text as bytes too, but not bytes as text.
    const response = yield* request(session, by, {
      method: "GET",
      path,
      headers: { accept: octets },
    })
    if (isDenied(response)) return yield* denied
    if (response.status !== 200) return yield* unexpected(barbican, response)
    return yield* Effect.catch(
      Effect.try(() => Redacted.make(utf8.decode(response.bytes))),
      () => denied,
    )
  }),
  store: Effect.fnUntraced(function* (by, { name, payload }) {
    const response = yield* request(session, by, {
      method: "POST",
      path: "/secrets",
      body: { name, secret_type: "opaque", ...encodePayload(Redacted.value(payload)) },
    })
    if (response.status === 403) return yield* denied
    if (response.status !== 201) return yield* unexpected(barbican, response)
    return (yield* decodeResponse(Stored, barbican, response)).secret_ref
  }),
  find: Effect.fnUntraced(function* (by, name) {
    const query = new URLSearchParams({ name, sort: "created:desc", limit: String(listed_max) })
    const response = yield* request(session, by, { method: "GET", path: `/secrets?${query}` })
    if (response.status === 403) return yield* denied
    if (response.status !== 200) return yield* unexpected(barbican, response)
    const { secrets } = yield* decodeResponse(SecretList, barbican, response)
    return secrets.find((secret) => secret.name === name && secret.status === "ACTIVE")?.secret_ref
  }),
  remove: Effect.fnUntraced(function* (by, href) {
    const id = secretIdOf(href)
    if (id === undefined) return yield* denied
    const response = yield* request(session, by, { method: "DELETE", path: `/secrets/${id}` })
    if (response.status === 403) return yield* denied
    if (response.status !== 204 && response.status !== 404)
      return yield* unexpected(barbican, response)
  }),
})
