/** BLAKE3-256 of bytes that come one after the other, for what runs without packages. */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { BlobHasher } from "#cluster"

export const blobHasher = (): BlobHasher => {
  const hasher = new Blake3Hasher()
  return {
    update: (bytes) => void hasher.update(bytes),
    digest: () => hasher.digest("hex"),
  }
}
