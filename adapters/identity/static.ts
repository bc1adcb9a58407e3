/** Callers from the configuration: by static token or client certificate. */
import { timingSafeEqual } from "node:crypto"
import type { TLSSocket } from "node:tls"
import { Effect, Redacted } from "effect"
import { sha256Of } from "#adapters/identity/token-store.ts"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, type ClientCertificate, Unauthenticated } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"

type Certificate = Settings["tls"]["client_certificates"][number]

/** Rights of a caller; may include scopes that settings cannot name. */
interface Grant extends Omit<Certificate, "subject" | "scopes"> {
  readonly scopes: ReadonlyArray<string>
}

/** One of `token` and `sha256` is empty. */
export interface StaticToken extends Grant {
  readonly name: string
  readonly token: Redacted.Redacted<string>
  readonly sha256: string
}

const unknown = Effect.fail(new Unauthenticated({ reason: "unknown" }))

/** Authenticates by the tokens of `[[auth.tokens]]`; compares every entry in constant time. */
export const staticTokens = (tokens: ReadonlyArray<StaticToken>): Authenticate => {
  const known = tokens.map((entry) => ({
    sha256: Buffer.from(hashOf(entry), "hex"),
    caller: callerOf("static", entry.name, entry),
  }))
  return ({ token }) => {
    if (token === undefined) return unknown
    const sha256 = Buffer.from(sha256Of(token()), "hex")
    const [found] = known.filter((entry) => timingSafeEqual(entry.sha256, sha256))
    return found === undefined ? unknown : Effect.succeed(found.caller)
  }
}

const hashOf = ({ sha256, token }: StaticToken) =>
  sha256 === "" ? sha256Of(Redacted.value(token)) : sha256

/**
 * Authenticates by the certificates of `[[tls.client_certificates]]`. A token in the request, even
 * a wrong one, has priority.
 */
export const certificates = (entries: Settings["tls"]["client_certificates"]): Authenticate => {
  const known = entries.map((entry) => ({
    subject: entry.subject,
    caller: callerOf("certificate", entry.subject, entry),
  }))
  return ({ token, certificate }) => {
    if (token !== undefined || certificate === undefined) return unknown
    const found = known.find(({ subject }) => certificate.subjects.includes(subject))
    return found === undefined ? unknown : Effect.succeed(found.caller)
  }
}

const callerOf = (kind: "static" | "certificate", name: string, grant: Grant): Caller => ({
  actor: `${kind === "static" ? "token" : "cert"}:${name}`,
  kind,
  scopes: new Set(grant.scopes),
  roles: new Set(grant.roles),
  ...(grant.project_id !== "" && { project_id: grant.project_id }),
  ...(grant.domain_id !== "" && { domain_id: grant.domain_id }),
  ...(grant.user_id !== "" && { user_id: grant.user_id }),
})

/** The names in a connection's client certificate; undefined if TLS did not verify one. */
export const clientCertificate = (socket: TLSSocket): ClientCertificate | undefined => {
  if (!socket.authorized) return undefined
  const { subject, subjectaltname } = socket.getPeerCertificate()
  const subjects = subjectsOf(subject?.CN, subjectaltname)
  return subjects.length === 0 ? undefined : { subjects }
}

/**
 * Names in the format of settings. Node quotes an alternative name with a comma or similar; such a
 * certificate could pass for two names, so all its alternative names are ignored.
 */
export const subjectsOf = (
  common_name: string | ReadonlyArray<string> | undefined,
  alternative_names: string | undefined,
): ReadonlyArray<string> => {
  const common = typeof common_name === "string" ? [`CN=${common_name}`] : []
  if (alternative_names === undefined || alternative_names.includes('"')) return common
  return [
    ...common,
    ...alternative_names.split(", ").filter((name) => /^(DNS|URI|email):/.test(name)),
  ]
}
