/**
 * Encryption of a state backup: AES-256-GCM with a key derived from a passphrase by scrypt.
 *
 * Source: RFC 7914 (scrypt); NIST SP 800-38D: random 96-bit nonces for up to 2^32 objects.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from "node:crypto"
import { createReadStream } from "node:fs"
import { open } from "node:fs/promises"
import { Schema } from "effect"

export type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

const key_bytes = 32
const nonce_bytes = 12
const tag_bytes = 16
const salt_bytes = 16
/** scrypt's cost: 128 MiB of memory and half a second per guess. */
const cost = { N: 2 ** 17, r: 8, p: 1 } as const
const memory_bytes_max = 256 * 1024 * 1024

/** Parameters of the key derivation, in the manifest's first line. */
export const Derivation = Schema.Struct({
  kdf: Schema.Literal("scrypt"),
  N: Schema.Literal(cost.N),
  r: Schema.Literal(cost.r),
  p: Schema.Literal(cost.p),
  /** In hex. */
  salt: Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/)),
})
export type Derivation = typeof Derivation.Type

export const newDerivation = (): Derivation => ({
  kdf: "scrypt",
  ...cost,
  salt: randomBytes(salt_bytes).toString("hex"),
})

export interface Key {
  readonly derivation: Derivation
  readonly secret: Uint8Array
}

export const keyOf = (passphrase: string, derivation: Derivation) =>
  new Promise<Key>((resolve, reject) => {
    const { salt, N, r, p } = derivation
    const options = { N, r, p, maxmem: memory_bytes_max }
    scrypt(passphrase, Buffer.from(salt, "hex"), key_bytes, options, (error, secret) =>
      error === null ? resolve({ derivation, secret }) : reject(error),
    )
  })

/** Encrypts to nonce, ciphertext, tag. */
export async function* encrypt({ secret }: Key, source: Bytes): AsyncIterable<Uint8Array> {
  const nonce = randomBytes(nonce_bytes)
  const cipher = createCipheriv("aes-256-gcm", secret, nonce, { authTagLength: tag_bytes })
  yield nonce
  for await (const piece of source) yield cipher.update(piece)
  const end = cipher.final()
  if (end.length > 0) yield end
  yield cipher.getAuthTag()
}

/** Decrypts a file. Throws at the end if the file is damaged or the key is wrong. */
export async function* decrypt(key: Key, path: string): AsyncIterable<Uint8Array> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    if (size < nonce_bytes + tag_bytes) throw new Error("it is truncated")
    const nonce = Buffer.alloc(nonce_bytes)
    const tag = Buffer.alloc(tag_bytes)
    await file.read(nonce, 0, nonce_bytes, 0)
    await file.read(tag, 0, tag_bytes, size - tag_bytes)
    const cipher = createDecipheriv("aes-256-gcm", key.secret, nonce, { authTagLength: tag_bytes })
    cipher.setAuthTag(tag)
    const end = size - tag_bytes - 1
    if (end >= nonce_bytes) {
      for await (const piece of createReadStream(path, { start: nonce_bytes, end })) {
        yield cipher.update(piece)
      }
    }
    cipher.final()
  } finally {
    await file.close()
  }
}

/** Encrypts and decrypts a short text; decryption throws if the text or the key is wrong. */
export const encryptText = async (key: Key, text: string) => {
  const pieces: Array<Uint8Array> = []
  for await (const piece of encrypt(key, [Buffer.from(text)])) pieces.push(piece)
  return Buffer.concat(pieces).toString("base64")
}

export const decryptText = ({ secret }: Key, text: string) => {
  const all = Buffer.from(text, "base64")
  const nonce = all.subarray(0, nonce_bytes)
  const cipher = createDecipheriv("aes-256-gcm", secret, nonce, { authTagLength: tag_bytes })
  cipher.setAuthTag(all.subarray(-tag_bytes))
  const body = all.subarray(nonce_bytes, -tag_bytes)
  return Buffer.concat([cipher.update(body), cipher.final()]).toString()
}
