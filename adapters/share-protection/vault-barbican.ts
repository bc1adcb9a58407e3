/**
 * The secrets manager Barbican, asked with the token of a tenant's trust and never with our own.
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

/** Secrets where the catalogue says that Barbican is. */
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

/** Secrets of one name that are looked at: the newest of all is the first. */
const found_max = 10

const denied = Effect.fail(new TrustAccessDenied({ detail: secret_denied }))

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Asks Barbican. Where it cannot ask Keystone it answers 503, and also where Keystone does not
 * take the token any more: which of both, Keystone says.
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

/** Fails where Keystone does not take this token. */
const stillTrusted = Effect.fnUntraced(function* (session: Session, subject: Delegation["token"]) {
  const call = keystoneCall(session, "GET", "/auth/tokens?nocatalog", { subject })
  const { status } = yield* session.askAsService(call)
  if (status === 403) return yield* new TrustAccessDenied({ detail: denials.powerless })
  if (status === 404) return yield* new TrustAccessDenied({ detail: denials.gone })
})

/** As text where that keeps it whole: of a text Barbican cuts the white space around it. */
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
    // Text is given as bytes too, and bytes as text are not.
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
