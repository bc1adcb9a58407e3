/** Detects the supported image formats by their signature. */

const signatures = {
  JPEG: [0xff, 0xd8, 0xff],
  PNG: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
}

/** The format of an image, by its first bytes only. */
export const typeOf = (bytes: Uint8Array): "JPEG" | "PNG" | undefined => {
  const begins = (signature: ReadonlyArray<number>) => signature.every((one, n) => bytes[n] === one)
  if (begins(signatures.JPEG)) return "JPEG"
  return begins(signatures.PNG) ? "PNG" : undefined
}
