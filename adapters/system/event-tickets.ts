/**
 * Encryption of tickets for event streams: AES-256-GCM with a key that the processes of a
 * deployment derive from `cluster.secret`. Without a secret each process has its own temporary key.
 * Source: decision 0173.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { sharedKey } from "#adapters/identity/shared-key.ts"
import type { Seal } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"

const algorithm = "aes-256-gcm"
const key_bytes = 32
/** NIST SP 800-38D: 96 bits, random, for far fewer than 2^32 tickets of one key. */
const nonce_bytes = 12
const tag_bytes = 16

/** Seals with this 32-byte key. */
export const sealWith = (key: Uint8Array): Seal => ({
  seal: (text) => {
    const nonce = randomBytes(nonce_bytes)
    const cipher = createCipheriv(algorithm, key, nonce)
    const sealed = [cipher.update(text, "utf8"), cipher.final()]
    return Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString("base64url")
  },
  unseal: (sealed) => {
    const bytes = Buffer.from(sealed, "base64url")
    // The decoder skips invalid characters, so two strings could decode to the same ticket.
    if (bytes.length < nonce_bytes + tag_bytes || bytes.toString("base64url") !== sealed) {
      return undefined
    }
    const options = { authTagLength: tag_bytes }
    const cipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonce_bytes), options)
    cipher.setAuthTag(bytes.subarray(-tag_bytes))
    try {
      const text = cipher.update(bytes.subarray(nonce_bytes, -tag_bytes))
      return Buffer.concat([text, cipher.final()]).toString("utf8")
    } catch {
      return undefined
    }
  },
})

/** The seal of this deployment. */
export const ticketSeal = ({ cluster }: Pick<Settings, "cluster">): Seal =>
  sealWith(sharedKey(cluster.secret, "event-ticket") ?? randomBytes(key_bytes))
