/**
 * How a node proves to another that it is of the same cluster: each says random bytes, and each
 * answers with what only somebody who has the secret can make of both. A proof is good for one
 * connection, whatever the clocks say, and for one direction.
 *
 * Source: DECISIONS, document 1, InternalService.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

const nonce_bytes = 32

export const newNonce = () => randomBytes(nonce_bytes).toString("base64url")

const nonce_form = /^[\w-]{43}$/

export const isNonce = (text: string) => nonce_form.test(text)

export interface Meeting {
  readonly cluster: string
  /** The node that connects, and what it said. */
  readonly caller: string
  readonly caller_nonce: string
  /** What the node that was called said. */
  readonly called_nonce: string
}

/** What one side says: base64url of 32 bytes. */
export const proofOf = (secret: string, side: "caller" | "called", meeting: Meeting) => {
  const { cluster, caller, caller_nonce, called_nonce } = meeting
  const said = JSON.stringify(["almanac-link-1", side, cluster, caller, caller_nonce, called_nonce])
  return createHmac("sha256", secret).update(said).digest("base64url")
}

/** Whether the other side's proof holds; takes as long for a wrong one as for a right one. */
export const isProof = (
  secret: string,
  side: "caller" | "called",
  meeting: Meeting,
  proof: string,
) => {
  const right = Buffer.from(proofOf(secret, side, meeting))
  const given = Buffer.from(proof)
  return given.length === right.length && timingSafeEqual(given, right)
}
