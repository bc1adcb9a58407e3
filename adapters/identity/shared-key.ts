/** Keys that every process of a deployment has alike: made from the secret that they share. */
import { hkdfSync } from "node:crypto"
import { Redacted } from "effect"
import { v4, v7 } from "uuid"

/** SHA-256's own width: HMAC gains nothing from a longer key. */
const key_bytes = 32

/** What the key is for: none tells anything of another, nor of the secret. */
export type Purpose =
  | "list-cursor"
  | "webhook"
  | "service-user"
  | "worker-project"
  | "domain"
  | "retried-token"
  | "event-ticket"

/** The key for this purpose by RFC 5869; undefined where no secret is shared. */
export const sharedKey = (secret: Redacted.Redacted, purpose: Purpose) => {
  const text = Redacted.value(secret)
  if (text === "") return undefined
  return Buffer.from(hkdfSync("sha256", text, "", `almanac ${purpose}`, key_bytes))
}

/** A UUID for this purpose that all of them have alike; a fresh one where no secret is shared. */
export const sharedId = (secret: Redacted.Redacted, purpose: Purpose) => {
  const random = sharedKey(secret, purpose)
  return random === undefined ? v7() : v4({ random })
}
