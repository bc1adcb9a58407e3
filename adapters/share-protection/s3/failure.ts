/**
 * Failures of S3 as text for tenants. The text is our own, because the SDK's errors contain signed
 * requests and an endpoint may return anything.
 */
import { Schema } from "effect"
import { refused_address } from "#adapters/outside/address.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

export class S3Failure extends Schema.TaggedError<S3Failure>()("S3Failure", {
  /** `unreachable`: no response; `denied`: 401 or 403; `missing`: 404; `odd`: all others. */
  kind: Schema.Literals(["unreachable", "denied", "missing", "odd"]),
  /** S3's error code, for example `NoSuchBucket`; empty if unknown. */
  code: Schema.String,
  /** A predicate without its subject, for example "rejects connections (ECONNREFUSED)". */
  message: Schema.String,
}) {}

/** Converts an error of the SDK. Uses only its name, status and code. */
export const s3Failure = (cause: unknown): S3Failure => {
  const { name, code, $metadata } = fieldsOf(cause)
  const status = $metadata?.httpStatusCode
  // The SDK also sets a status on its own errors, for example if it cannot parse a response.
  if (status === undefined) return unreachable(codeText(code) || codeText(name))
  const summary = [status, codeText(name)].filter((part) => part !== "").join(" ")
  const failure = (kind: S3Failure["kind"], message: string) =>
    new S3Failure({ kind, code: codeText(name), message })
  if (status === 401 || status === 403) return failure("denied", `denies access (${summary})`)
  if (name === "NoSuchBucket") return failure("missing", `has no such bucket (${summary})`)
  if (status === 404) return failure("missing", `has no such bucket or object (${summary})`)
  if (status >= 300 && status < 400) {
    return failure("odd", `redirects to another address, which is not followed (${summary})`)
  }
  if (status < 300) return failure("odd", `returned a response that is not from S3 (${summary})`)
  return failure("odd", `returned an error (${summary})`)
}

/** Maps a failure for the port: access errors are the tenant's, all others the service's. */
export const asRejection = ({ kind, message }: S3Failure) => {
  const detail = `The S3 service ${message}.`
  return kind === "denied" ? new TrustAccessDenied({ detail }) : new BackendUnavailable({ detail })
}

/** The request timed out. */
export const timeoutFailure = () =>
  new S3Failure({ kind: "unreachable", code: "TimeoutError", message: messages.TimeoutError ?? "" })

const Fields = Schema.Struct({
  name: Schema.optionalKey(Schema.Unknown),
  code: Schema.optionalKey(Schema.Unknown),
  $metadata: Schema.optionalKey(Schema.Struct({ httpStatusCode: Schema.optional(Schema.Number) })),
})

const isFields = Schema.is(Fields)

const fieldsOf = (cause: unknown): typeof Fields.Type => (isFields(cause) ? cause : {})

/** The endpoint chooses these values, so anything that does not look like a code is dropped. */
const codeText = (value: unknown) =>
  typeof value === "string" && /^\w{1,64}$/.test(value) && value !== "Error" ? value : ""

const unreachable = (code: string) => {
  const known = messages[code] ?? (is_tls.test(code) ? "has a certificate that is not trusted" : "")
  const message = known || "cannot be used"
  return new S3Failure({ kind: "unreachable", code, message: `${message} (${code || "no code"})` })
}

const no_name = "has a name that cannot be resolved"
const no_route = "has no route"
const broken = "closes the connection"
const slow = "does not respond in time"

const messages: Readonly<Record<string, string>> = {
  ENOTFOUND: no_name,
  EAI_AGAIN: no_name,
  EHOSTUNREACH: no_route,
  ENETUNREACH: no_route,
  ECONNRESET: broken,
  EPIPE: broken,
  HPE_INVALID_CONSTANT: "does not speak HTTP",
  TimeoutError: slow,
  ETIMEDOUT: slow,
  ECONNREFUSED: "rejects connections",
  [refused_address]: "has no address that is public or in targets.allowed_networks",
  EPROTO: "does not speak TLS",
  AnswerTooLong: "returned a response that is too long",
}

/** OpenSSL's and Node's codes for certificate errors. */
const is_tls = /CERT|UNABLE_TO|ISSUER|HOSTNAME_MISMATCH/
