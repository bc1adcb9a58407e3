/** How a server of this machine is known: by the very certificate that its settings name. */

/** What Node's `tls.connect` is told. */
export interface Trusted {
  readonly ca?: Buffer
  readonly allowPartialTrustChain?: boolean
  readonly checkServerIdentity?: () => undefined
}

/**
 * Trusts this certificate (PEM, its chain too) and no other, whoever signed it: its authority need
 * not be at hand, nor the name in it be this machine's.
 */
export const byItself = (ca: Buffer): Trusted => ({
  ca,
  allowPartialTrustChain: true,
  checkServerIdentity: () => undefined,
})
