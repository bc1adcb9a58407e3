/**
 * Mutual authentication of nodes: both exchange nonces, and each sends an HMAC over both that
 * requires the cluster's secret. A proof is valid for one connection and one direction, independent
 * of clocks.
 *
 * Source: DECISIONS, document 1, InternalService.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

const nonce_bytes = 32

export const newNonce = () => randomBytes(nonce_bytes).toString("base64url")

const nonce_form = /^[\w-]{43}$/

export const isNonce = (text: string) => nonce_form.test(text)

export interface Handshake {
  readonly cluster: string
  /** The connecting node and its nonce. */
  readonly caller: string
  readonly caller_nonce: string
  /** The nonce of the node that accepts the connection. */
  readonly called_nonce: string
}

/** The proof of one side: base64url of 32 bytes. */
export const proofOf = (secret: string, side: "caller" | "called", handshake: Handshake) => {
  const { cluster, caller, caller_nonce, called_nonce } = handshake
  const text = JSON.stringify(["almanac-link-1", side, cluster, caller, caller_nonce, called_nonce])
  return createHmac("sha256", secret).update(text).digest("base64url")
}

/** Verifies the other side's proof in constant time. */
export const isProof = (
  secret: string,
  side: "caller" | "called",
  handshake: Handshake,
  proof: string,
) => {
  const expected = Buffer.from(proofOf(secret, side, handshake))
  const actual = Buffer.from(proof)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
