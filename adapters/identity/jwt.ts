/** Authentication by JWT: HS256 with a shared secret, RS256 and EdDSA with public keys (JWKS). */
import { Clock, Effect, Redacted, Schema } from "effect"
import type { JWTVerifyGetKey } from "jose"
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors, jwtVerify } from "jose"
import { knownTokens } from "#adapters/identity/known-token.ts"
import { readBounded } from "#files"
import type { Caller } from "#gateway/caller.ts"
import { type Authenticate, IdentityUnavailable, Unauthenticated } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"
import { PrincipalId } from "#schemas/token.ts"

type JwtSettings = Settings["auth"]["jwt"]

/** A thousand keys are about 400 KB. */
const jwks_bytes_max = 2 ** 20

/**
 * Cache time of a verified token in milliseconds; a withdrawn key is accepted that much longer.
 */
const cache_ms = 60_000

/**
 * Authenticates by JWTs, as section `[auth.jwt]` configures. A token must have `sub` and `exp`, and
 * `iss` and `aud` if configured. Without keys every token is unknown. Fails if `jwks_file` cannot
 * be read.
 */
export const jwts = Effect.fnUntraced(function* (settings: JwtSettings) {
  const secret = new TextEncoder().encode(Redacted.value(settings.hs256_secret))
  const public_keys = yield* publicKeys(settings)
  // The key is chosen by the algorithm, so that a public key never serves as a shared secret.
  const keyFor: JWTVerifyGetKey = (header, token) => {
    if (header.alg === "HS256") return secret
    if (public_keys === undefined) throw new errors.JOSEAlgNotAllowed("no public keys")
    return public_keys(header, token)
  }
  const algorithms = settings.algorithms.filter((algorithm) =>
    algorithm === "HS256" ? secret.length > 0 : public_keys !== undefined,
  )
  const known = knownTokens(yield* Clock.Clock, cache_ms)
  const verify = Effect.fnUntraced(function* (token: string) {
    const now = yield* Clock.currentTimeMillis
    const { payload } = yield* Effect.tryPromise({
      try: () =>
        jwtVerify(token, keyFor, {
          algorithms,
          requiredClaims: ["exp", "sub"],
          clockTolerance: settings.clock_tolerance_seconds,
          currentDate: new Date(now),
          ...(settings.issuer !== "" && { issuer: settings.issuer }),
          ...(settings.audience !== "" && { audience: settings.audience }),
        }),
      catch: refusal,
    })
    const claims = Schema.decodeUnknownEffect(Claims)(payload)
    const rejection = () => new Unauthenticated({ reason: "claims" })
    const caller = callerOf(yield* Effect.mapError(claims, rejection))
    // jose has verified that it exists and is a number.
    const expires_s = Number(payload.exp) + settings.clock_tolerance_seconds
    known.add(token, caller, now, expires_s * 1000)
    return caller
  })
  const authenticate: Authenticate = ({ token }) => {
    const text = token === undefined ? "" : token()
    if (algorithms.length === 0 || text.split(".").length !== jws_parts) return unknown
    const caller = known.find(text)
    return caller === undefined ? verify(text) : Effect.succeed(caller)
  }
  return authenticate
})

const unknown = Effect.fail(new Unauthenticated({ reason: "unknown" }))

/** Header, payload and signature: RFC 7515 §3.1. */
const jws_parts = 3

const publicKeys = Effect.fnUntraced(function* ({ jwks_url, jwks_file }: JwtSettings) {
  if (jwks_url !== "") {
    return createRemoteJWKSet(new URL(jwks_url), { [customFetch]: fetchBounded })
  }
  if (jwks_file === "") return undefined
  const text = yield* Effect.mapError(
    readBounded(jwks_file, jwks_bytes_max),
    ({ message }) => new IdentityUnavailable({ message: `auth.jwt.jwks_file: ${message}` }),
  )
  return yield* Effect.try({
    try: () => createLocalJWKSet(JSON.parse(text)),
    catch: () =>
      new IdentityUnavailable({ message: `auth.jwt.jwks_file: ${jwks_file} contains no JWKS` }),
  })
})

/** Fetches the keys. jose limits the time (5 s) and caches for 10 minutes; this limits the size. */
const fetchBounded = async (url: string, options: RequestInit) => {
  const response = await fetch(url, options)
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > jwks_bytes_max) throw new Error("the JWKS is too large")
    chunks.push(chunk)
  }
  return new Response(Buffer.concat(chunks), { status: response.status })
}

/** Maps jose's errors; any other error means that the keys are unavailable. */
const refusal = (cause: unknown): Unauthenticated | IdentityUnavailable => {
  const reason = cause instanceof errors.JOSEError ? reasons[cause.code] : undefined
  if (reason === undefined) {
    return new IdentityUnavailable({ message: "the keys of auth.jwt could not be used" })
  }
  const is_early = cause instanceof errors.JWTClaimValidationFailed && cause.claim === "nbf"
  return new Unauthenticated({ reason: is_early ? "not_yet_valid" : reason })
}

const reasons: Readonly<Record<string, Unauthenticated["reason"]>> = {
  ERR_JWT_EXPIRED: "expired",
  ERR_JWT_CLAIM_VALIDATION_FAILED: "claims",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "signature",
  ERR_JWKS_NO_MATCHING_KEY: "signature",
  // Several keys match a token without `kid`: its issuer must set one.
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "malformed",
  ERR_JOSE_ALG_NOT_ALLOWED: "algorithm",
  ERR_JOSE_NOT_SUPPORTED: "algorithm",
  ERR_JWS_INVALID: "malformed",
  ERR_JWT_INVALID: "malformed",
}

/** A name for the log: at most 200 characters, no control characters. */
const Subject = Schema.String.check(Schema.isPattern(/^\P{Cc}{1,200}$/u))
const StringOrList = Schema.Union([Schema.String, Schema.Array(Schema.String)])

const Claims = Schema.Struct({
  sub: Subject,
  scope: Schema.optionalKey(StringOrList),
  scp: Schema.optionalKey(StringOrList),
  roles: Schema.optionalKey(Schema.Array(Schema.String)),
  project_id: Schema.optionalKey(PrincipalId),
  domain_id: Schema.optionalKey(PrincipalId),
  user_id: Schema.optionalKey(PrincipalId),
})

const callerOf = ({
  sub,
  scope = [],
  scp = [],
  roles = [],
  ...ids
}: typeof Claims.Type): Caller => ({
  actor: `jwt:${sub}`,
  kind: "jwt",
  scopes: new Set([...scopesIn(scope), ...scopesIn(scp)]),
  roles: new Set(roles),
  ...ids,
})

/** RFC 8693 §4.2 separates scopes with spaces; some issuers send a list. */
const scopesIn = (claim: typeof StringOrList.Type) =>
  typeof claim === "string" ? claim.split(" ").filter((word) => word !== "") : claim
