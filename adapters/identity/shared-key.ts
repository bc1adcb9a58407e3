/** Keys shared by all processes of a deployment, derived from their common secret. */
import { hkdfSync } from "node:crypto"
import { Redacted } from "effect"
import { v4, v7 } from "uuid"

/** The length of SHA-256: HMAC gains nothing from a longer key. */
const key_bytes = 32

/** Purpose of a key: keys reveal nothing about each other or the secret. */
export type Purpose =
  | "list-cursor"
  | "webhook"
  | "service-user"
  | "worker-project"
  | "domain"
  | "retried-token"
  | "event-ticket"

/** Derives the key for this purpose (RFC 5869); undefined without a shared secret. */
export const sharedKey = (secret: Redacted.Redacted, purpose: Purpose) => {
  const text = Redacted.value(secret)
  if (text === "") return undefined
  return Buffer.from(hkdfSync("sha256", text, "", `almanac ${purpose}`, key_bytes))
}

/** A UUID for this purpose that all processes share; a random one without a shared secret. */
export const sharedId = (secret: Redacted.Redacted, purpose: Purpose) => {
  const random = sharedKey(secret, purpose)
  return random === undefined ? v7() : v4({ random })
}
