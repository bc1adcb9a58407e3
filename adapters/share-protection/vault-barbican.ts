/**
 * The secrets manager Barbican, accessed only with tokens of tenants' trusts, never with our own.
 *
 * Source: document 2 §1 Secrets; decisions of document 2, identity, secrets, shares.
 */
import { Effect, Layer, Redacted, Schema } from "effect"
import { type Delegation, denials } from "#actors/share-protection/ports/trusts.ts"
import { secret_denied, secretIdOf, Vault } from "#actors/share-protection/ports/vault.ts"
import { type Answer, type Call, decoded, unexpected } from "#adapters/keystone/http.ts"
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
const Listed = Schema.Struct({
  secrets: Schema.Array(
    Schema.Struct({ name: Schema.String, status: Schema.String, secret_ref: Schema.String }),
  ),
})

/** Maximum secrets of one name to search; the newest comes first. */
const found_max = 10

const denied = Effect.fail(new TrustAccessDenied({ detail: secret_denied }))

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Sends a request to Barbican. A 503 means that Barbican cannot reach Keystone or that Keystone
 * rejects the token; Keystone is queried to find out which.
 */
const asked = Effect.fnUntraced(function* (
  session: Session,
  { token }: Delegation,
  { path, ...call }: Pick<Call, "method" | "body" | "headers"> & { readonly path: string },
) {
  const base = (yield* session.endpoint("key-manager")).replace(/\/v1$/, "")
  const answer = yield* session.ask({ ...barbican, ...call, url: `${base}/v1${path}`, token })
  if (answer.status === 401) return yield* new TrustAccessDenied({ detail: denials.gone })
  if (answer.status === 503) yield* stillTrusted(session, token)
  return answer
})

/** Fails if Keystone rejects this token. */
const stillTrusted = Effect.fnUntraced(function* (session: Session, subject: Delegation["token"]) {
  const call = keystoneCall(session, "GET", "/auth/tokens?nocatalog", { subject })
  const { status } = yield* session.askAsService(call)
  if (status === 403) return yield* new TrustAccessDenied({ detail: denials.powerless })
  if (status === 404) return yield* new TrustAccessDenied({ detail: denials.gone })
})

/** As text unless it begins or ends with whitespace, which Barbican would strip. */
const asStored = (payload: string) =>
  payload.trim() === payload
    ? { payload, payload_content_type: "text/plain" }
    : {
        payload: Buffer.from(payload).toString("base64"),
        payload_content_type: octets,
        payload_content_encoding: "base64",
      }

const isDenied = ({ status }: Answer) => status === 403 || status === 404

const vaultOf = (session: Session): Vault["Service"] => ({
  read: Effect.fnUntraced(function* (by, href) {
    const id = secretIdOf(href)
    if (id === undefined) return yield* denied
    const path = `/secrets/${id}/payload`
    // Barbican returns text as bytes too, but not bytes as text.
    const answer = yield* asked(session, by, { method: "GET", path, headers: { accept: octets } })
    if (isDenied(answer)) return yield* denied
    if (answer.status !== 200) return yield* unexpected(barbican, answer)
    return yield* Effect.catch(
      Effect.try(() => Redacted.make(utf8.decode(answer.bytes))),
      () => denied,
    )
  }),
  store: Effect.fnUntraced(function* (by, { name, payload }) {
    const answer = yield* asked(session, by, {
      method: "POST",
      path: "/secrets",
      body: { name, secret_type: "opaque", ...asStored(Redacted.value(payload)) },
    })
    if (answer.status === 403) return yield* denied
    if (answer.status !== 201) return yield* unexpected(barbican, answer)
    return (yield* decoded(Stored, barbican, answer)).secret_ref
  }),
  find: Effect.fnUntraced(function* (by, name) {
    const query = new URLSearchParams({ name, sort: "created:desc", limit: String(found_max) })
    const answer = yield* asked(session, by, { method: "GET", path: `/secrets?${query}` })
    if (answer.status === 403) return yield* denied
    if (answer.status !== 200) return yield* unexpected(barbican, answer)
    const { secrets } = yield* decoded(Listed, barbican, answer)
    return secrets.find((secret) => secret.name === name && secret.status === "ACTIVE")?.secret_ref
  }),
  remove: Effect.fnUntraced(function* (by, href) {
    const id = secretIdOf(href)
    if (id === undefined) return yield* denied
    const answer = yield* asked(session, by, { method: "DELETE", path: `/secrets/${id}` })
    if (answer.status === 403) return yield* denied
    if (answer.status !== 204 && answer.status !== 404) return yield* unexpected(barbican, answer)
  }),
})
