/** An incremental BLAKE3-256 hash, for packages that must not depend on the hashing library. */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { BlobHasher } from "#cluster"

export const blobHasher = (): BlobHasher => {
  const hasher = new Blake3Hasher()
  return {
    update: (bytes) => void hasher.update(bytes),
    digest: () => hasher.digest("hex"),
  }
}
