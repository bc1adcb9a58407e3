/** The port to identity: from a token or a certificate to a caller. */
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

/** The credentials of a request; a certificate counts only without a token. */
export interface Credentials {
  /** A function, which logs do not print; Redacted's table costs a small read a twentieth. */
  readonly token?: (() => string) | undefined
  readonly certificate?: ClientCertificate | undefined
}

/** The response is 401; the reason is for the log, and clients get only its category. */
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

/** The keys or the identity service could not be reached: 503, never 401. */
export class IdentityUnavailable extends Schema.TaggedError<IdentityUnavailable>()(
  "IdentityUnavailable",
  {
    message: Schema.String,
    /** The Idempotency-Key was used with another request before: 422. */
    is_reused: Schema.optionalKey(Schema.Boolean),
  },
) {}

/**
 * The command of a request; with a fingerprint it is idempotent, and makes one credential.
 * Source: decision 0180.
 */
export type Repeatable = Pick<Origin, "command_id" | "fingerprint">

export type Authenticate = (
  credentials: Credentials,
) => Effect.Effect<Caller, Unauthenticated | IdentityUnavailable>

/** Used once per request, by the door. */
export class Identity extends Context.Service<Identity, { readonly authenticate: Authenticate }>()(
  "almanac/gateway/Identity",
) {}

/** Seals short texts, so that no one but the processes of this deployment can read or make them. */
export interface Seal {
  /** Letters, digits, `-` and `_`: fit for a URL. Another text each time, of about 4/3 the size. */
  readonly seal: (text: string) => string
  /** The text; undefined if we did not seal it. */
  readonly unseal: (sealed: string) => string | undefined
}

/** Issues tokens of our own, which every process of a deployment knows. */
export class TokenIssuer extends Context.Service<
  TokenIssuer,
  {
    /** Returns the token once; only its hash is stored. */
    readonly issue: (
      request: TokenRequest,
      origin: Origin,
    ) => Effect.Effect<Redacted.Redacted<string>, IdentityUnavailable>
    /**
     * Revokes every issued token of this name, here at once; returns their number. A retry
     * counts those that the first request revoked.
     */
    readonly revoke: (name: string, origin: Origin) => Effect.Effect<number, IdentityUnavailable>
  }
>()("almanac/gateway/TokenIssuer") {}

/** Creates trusts for a tenant; only the embedded identity lets an operator do that. */
export class TrustIssuer extends Context.Service<
  TrustIssuer,
  {
    /** Returns the trust's id. */
    readonly issue: (
      request: TrustRequest,
      origin?: Repeatable,
    ) => Effect.Effect<string, IdentityUnavailable>
    /** Returns whether this request revoked the trust, now or at its first try. */
    readonly revoke: (
      trust_id: string,
      origin?: Partial<Repeatable>,
    ) => Effect.Effect<boolean, IdentityUnavailable>
  }
>()("almanac/gateway/TrustIssuer") {}

/** Stores secrets for a tenant; only the embedded secrets manager lets an operator do that. */
export class SecretKeeper extends Context.Service<
  SecretKeeper,
  {
    /** Returns the secret's href. */
    readonly put: (
      request: SecretRequest,
      origin?: Repeatable,
    ) => Effect.Effect<string, IdentityUnavailable>
  }
>()("almanac/gateway/SecretKeeper") {}
