/** How a server of this machine is known: by the very certificate that it serves. */
import { X509Certificate } from "node:crypto"
import type { PeerCertificate } from "node:tls"

/** What Node's `tls.connect` is told. */
export interface Trusted {
  readonly ca?: Buffer
  readonly allowPartialTrustChain?: boolean
  readonly checkServerIdentity?: (host: string, shown: PeerCertificate) => Error | undefined
}

const of_another = "It shows another certificate than its settings name in tls.cert."

/**
 * Trusts the first certificate of this PEM and no other, whoever signed it: its authority need not
 * be at hand, nor the name in it be this machine's. Its chain is there too, and is an authority for
 * TLS, which others have certificates of as well: so the certificate itself is compared.
 */
export const byItself = (ca: Buffer): Trusted => ({
  ca,
  allowPartialTrustChain: true,
  checkServerIdentity: (_, { raw }) =>
    new X509Certificate(ca).raw.equals(raw) ? undefined : new Error(of_another),
})
