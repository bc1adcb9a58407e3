/** The port that authenticates callers by a token or a certificate. */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { Origin } from "#events/log.ts"
import type { Caller } from "#gateway/caller.ts"
import type { SecretRequest } from "#schemas/secret.ts"
import type { TokenRequest } from "#schemas/token.ts"
import type { TrustRequest } from "#schemas/trust.ts"

/** A client certificate that the TLS layer has verified against `tls.client_ca`. */
export interface ClientCertificate {
  /** Its names in the format of the settings: `CN=`, `DNS:`, `URI:` or `email:` and the name. */
  readonly subjects: ReadonlyArray<string>
}

/** The credentials of a request. The certificate is ignored if there is a token. */
export interface Credentials {
  /**
   * A function, because logs do not print functions; Redacted's table would make small reads a
   * twentieth slower.
   */
  readonly token?: (() => string) | undefined
  readonly certificate?: ClientCertificate | undefined
}

/** The response is 401. The reason is for the log; clients only get its category. */
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
    /** The Idempotency-Key was used with a different request before: 422. */
    is_reused: Schema.optionalKey(Schema.Boolean),
  },
) {}

/**
 * The command of a request; with a fingerprint it is idempotent, and creates one credential.
 * Source: decision 0180.
 */
export type Repeatable = Pick<Origin, "command_id" | "fingerprint">

export type Authenticate = (
  credentials: Credentials,
) => Effect.Effect<Caller, Unauthenticated | IdentityUnavailable>

/** The door uses it once per request. */
export class Identity extends Context.Service<Identity, { readonly authenticate: Authenticate }>()(
  "almanac/gateway/Identity",
) {}

/** Seals short texts, so that only processes of this deployment can read or create them. */
export interface Seal {
  /**
   * URL-safe: letters, digits, `-` and `_`. Different on each call, and about 4/3 as long as the
   * text.
   */
  readonly seal: (text: string) => string
  /** The text; undefined if it was not sealed by this deployment. */
  readonly unseal: (sealed: string) => string | undefined
}

/** Issues tokens that are valid in every process of the deployment. */
export class TokenIssuer extends Context.Service<
  TokenIssuer,
  {
    /** Returns the token once; only its hash is stored. */
    readonly issue: (
      request: TokenRequest,
      origin: Origin,
    ) => Effect.Effect<Redacted.Redacted<string>, IdentityUnavailable>
    /**
     * Revokes all issued tokens of this name, in this process immediately; returns their number. A
     * retry returns the number that the first request revoked.
     */
    readonly revoke: (name: string, origin: Origin) => Effect.Effect<number, IdentityUnavailable>
  }
>()("almanac/gateway/TokenIssuer") {}

/** Creates trusts on behalf of a tenant. Only the embedded identity lets operators do that. */
export class TrustIssuer extends Context.Service<
  TrustIssuer,
  {
    /** Returns the trust's id. */
    readonly issue: (
      request: TrustRequest,
      origin?: Repeatable,
    ) => Effect.Effect<string, IdentityUnavailable>
    /** Returns whether this request, or an earlier attempt at it, revoked the trust. */
    readonly revoke: (
      trust_id: string,
      origin?: Partial<Repeatable>,
    ) => Effect.Effect<boolean, IdentityUnavailable>
  }
>()("almanac/gateway/TrustIssuer") {}

/**
 * Stores secrets on behalf of a tenant. Only the embedded secrets manager lets operators do that.
 */
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
