/** The port to whoever knows the callers: from a token or a certificate to a caller. */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { Origin } from "#events/log.ts"
import type { Caller } from "#gateway/caller.ts"
import type { SecretRequest } from "#schemas/secret.ts"
import type { TokenRequest } from "#schemas/token.ts"
import type { TrustRequest } from "#schemas/trust.ts"

/** A client certificate that the TLS layer has verified against `tls.client_ca`. */
export interface ClientCertificate {
  /** Its names as settings write them: `CN=`, `DNS:`, `URI:` or `email:` and the name. */
  readonly subjects: ReadonlyArray<string>
}

/** What a request shows; a token, where there is one, decides alone. */
export interface Credentials {
  /** A function, which no log spells out; Redacted's table costs a small read a twentieth. */
  readonly token?: (() => string) | undefined
  readonly certificate?: ClientCertificate | undefined
}

/** The answer 401; the reason is for the log, a client is told no more than the category. */
export class Unauthenticated extends Schema.TaggedError<Unauthenticated>()("Unauthenticated", {
  reason: Schema.Literals([
    "missing",
    "malformed",
    "unknown",
    "expired",
    "not_yet_valid",
    "signature",
    "algorithm",
    "claims",
  ]),
}) {}

/** The keys or the service that would know could not be reached: 503, never 401. */
export class IdentityUnavailable extends Schema.TaggedError<IdentityUnavailable>()(
  "IdentityUnavailable",
  {
    message: Schema.String,
    /** The request's key came with something else before: 422. */
    is_reused: Schema.optionalKey(Schema.Boolean),
  },
) {}

/**
 * Which command a request means; with a fingerprint it may come again, and makes one credential
 * however often it does. Source: decision 0180.
 */
export type Repeatable = Pick<Origin, "command_id" | "fingerprint">

export type Authenticate = (
  credentials: Credentials,
) => Effect.Effect<Caller, Unauthenticated | IdentityUnavailable>

/** Used in one place of the gateway, once per request. */
export class Identity extends Context.Service<Identity, { readonly authenticate: Authenticate }>()(
  "almanac/gateway/Identity",
) {}

/** Seals short texts, so that no one but the processes of this deployment can read or make them. */
export interface Seal {
  /** Letters, digits, `-` and `_`: fit for a URL. Another text each time, of about 4/3 the size. */
  readonly seal: (text: string) => string
  /** The text again; undefined if we did not seal it. */
  readonly unseal: (sealed: string) => string | undefined
}

/** Issues tokens of our own, which every process of a deployment knows. */
export class TokenIssuer extends Context.Service<
  TokenIssuer,
  {
    /** Answers the token once; only its hash is kept. */
    readonly issue: (
      request: TokenRequest,
      origin: Origin,
    ) => Effect.Effect<Redacted.Redacted<string>, IdentityUnavailable>
    /**
     * Revokes every issued token of this name, here at once; answers how many there were. A retry
     * counts those that the first request revoked.
     */
    readonly revoke: (name: string, origin: Origin) => Effect.Effect<number, IdentityUnavailable>
  }
>()("almanac/gateway/TokenIssuer") {}

/** Makes trusts in a tenant's name; only the embedded identity lets an operator do that. */
export class TrustIssuer extends Context.Service<
  TrustIssuer,
  {
    /** Answers the trust's id. */
    readonly issue: (
      request: TrustRequest,
      origin?: Repeatable,
    ) => Effect.Effect<string, IdentityUnavailable>
    /** Answers whether the trust was revoked by this, now or when the request was sent before. */
    readonly revoke: (
      trust_id: string,
      origin?: Partial<Repeatable>,
    ) => Effect.Effect<boolean, IdentityUnavailable>
  }
>()("almanac/gateway/TrustIssuer") {}

/** Keeps secrets in a tenant's name; only the embedded secrets manager lets an operator do that. */
export class SecretKeeper extends Context.Service<
  SecretKeeper,
  {
    /** Answers the secret's href. */
    readonly put: (
      request: SecretRequest,
      origin?: Repeatable,
    ) => Effect.Effect<string, IdentityUnavailable>
  }
>()("almanac/gateway/SecretKeeper") {}
