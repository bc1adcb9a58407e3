/** Signs a webhook's message. Source: Standard Webhooks 1.0.0, signature scheme. */
import { createHmac } from "node:crypto"

const prefix = "whsec_"

/** A secret in the format for its receiver. */
export const secretText = (bytes: Uint8Array) => prefix + Buffer.from(bytes).toString("base64")

/** Version and signature of `<id>.<timestamp>.<body>` with one secret. */
const signature = (secret: string, content: string) => {
  const key = Buffer.from(secret.slice(prefix.length), "base64")
  return `v1,${createHmac("sha256", key).update(content).digest("base64")}`
}

export interface Signed {
  /** Without dots, which are delimiters of the signed content. */
  readonly id: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly body: string
}

/** The three headers of a message; a receiver accepts it if one of the signatures is valid. */
export const signedHeaders = (
  secrets: ReadonlyArray<string>,
  { id, timestamp, body }: Signed,
): Readonly<Record<string, string>> => ({
  "webhook-id": id,
  "webhook-timestamp": String(timestamp),
  "webhook-signature": secrets
    .map((secret) => signature(secret, `${id}.${timestamp}.${body}`))
    .join(" "),
})
