/** Keys that every process of a deployment has alike: made from the secret that they share. */
import { hkdfSync } from "node:crypto"
import { Redacted } from "effect"

/** SHA-256's own width: HMAC gains nothing from a longer key. */
const key_bytes = 32

/** What the key is for: none tells anything of another, nor of the secret. */
export type Purpose = "list-cursor" | "webhook"

/** The key for this purpose by RFC 5869; undefined where no secret is shared. */
export const sharedKey = (secret: Redacted.Redacted, purpose: Purpose) => {
  const text = Redacted.value(secret)
  if (text === "") return undefined
  return Buffer.from(hkdfSync("sha256", text, "", `almanac ${purpose}`, key_bytes))
}
