/** Limits of tenants' texts, so that each aggregate's snapshot stays under 16 KiB. */
import { Schema } from "effect"

/** Maximum characters of a name. */
const name_chars_max = 255
/** Maximum characters of a URL or an href. */
const url_chars_max = 1024
/** Maximum characters of a trust id; Keystone's have 32. */
const trust_chars_max = 64
/** Maximum characters of a failure's reason. */
const reason_chars_max = 1024

const no_control = Schema.isPattern(/^[^\p{Cc}]*$/u, { expected: "no control characters" })

/** Well-formed, because lone surrogates take six bytes of JSON per character instead of three. */
export const Name = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxLength(name_chars_max),
  no_control,
  Schema.makeFilter<string>((name) => name.trim() !== "" || "Expected more than whitespace"),
  Schema.makeFilter<string>((name) => name.isWellFormed() || "Expected no unpaired surrogates"),
)

// RFC 3986: other characters are percent-encoded or in punycode.
const http_url = /^[hH][tT]{2}[pP][sS]?:\/\/[\w[][\w.~:/?[\]@!$&'()*+,;=%-]*$/u

const isWithoutUser = (text: string) => {
  if (!URL.canParse(text)) return "Expected an http or https URL"
  const { username, password } = new URL(text)
  return (username === "" && password === "") || "Expected a URL without a user or password"
}

/** An http or https URL without a user, password or fragment. */
export const HttpUrl = Schema.String.check(
  Schema.isMaxLength(url_chars_max),
  Schema.isPattern(http_url, { expected: "an http or https URL without a fragment" }),
  Schema.makeFilter<string>(isWithoutUser),
)

// Any case, spelled out: a JSON Schema pattern has no flags.
const secret_path =
  /\/[vV]1\/[sS][eE][cC][rR][eE][tT][sS]\/[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/u

/** The location of a secret in the secrets manager, never the secret itself. */
export const SecretRef = HttpUrl.check(
  Schema.isPattern(secret_path, { expected: "an href that ends in /v1/secrets/<uuid>" }),
).annotate({ description: "Href of a secret in the secrets manager." })

export const TrustId = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxLength(trust_chars_max),
  Schema.isPattern(/^[\w-]+$/u, { expected: "letters, digits, _ and -" }),
)

/** Truncates a text to the length of a name. */
export const nameOf = (text: string) => text.slice(0, name_chars_max).toWellFormed()

/** Truncates a reason to its maximum length. */
export const reasonOf = (text: string) => text.slice(0, reason_chars_max).toWellFormed()

export const Reason = Schema.String.check(Schema.isMaxLength(reason_chars_max))

/** A non-negative integer. */
export const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
