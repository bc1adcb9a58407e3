/** Pins the TLS certificate of a server on this machine. */
import { X509Certificate } from "node:crypto"
import type { PeerCertificate } from "node:tls"

/** Options of Node's `tls.connect`. */
export interface TlsTrust {
  readonly ca?: Buffer
  readonly allowPartialTrustChain?: boolean
  readonly checkServerIdentity?: (host: string, certificate: PeerCertificate) => Error | undefined
}

const mismatch = "The certificate differs from the one in its setting tls.cert."

/**
 * Trusts only the first certificate of this PEM, regardless of its issuer and host name. The PEM
 * may hold the chain too, which TLS accepts as an authority and which may have issued other
 * certificates, so the certificate itself is compared.
 */
export const pinnedTo = (ca: Buffer): TlsTrust => ({
  ca,
  allowPartialTrustChain: true,
  checkServerIdentity: (_, { raw }) =>
    new X509Certificate(ca).raw.equals(raw) ? undefined : new Error(mismatch),
})
