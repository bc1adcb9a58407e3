/**
 * Makes a repository cheap to open. `restic init` picks scrypt parameters that cost half a second
 * of processor time, which every later restic call spends again. A test makes dozens of calls, so
 * its repository gets the same key with parameters that cost nothing.
 *
 * Source: restic's design document, "Keys, Encryption and MAC".
 */
import { createCipheriv, createHash, randomBytes, scryptSync } from "node:crypto"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

interface Cost {
  readonly N: number
  readonly r: number
  readonly p: number
}

const lightest: Cost = { N: 2, r: 1, p: 1 }
const memory_bytes_max = 2 ** 30
const mac_bytes = 16

const littleEndian = (bytes: Uint8Array) =>
  BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`)

const poly1305 = (r: Buffer, s: Buffer, text: Buffer) => {
  const prime = 2n ** 130n - 5n
  const factor = littleEndian(r) & 0x0ffffffc0ffffffc0ffffffc0fffffffn
  let sum = 0n
  for (let at = 0; at < text.length; at += mac_bytes) {
    const block = Buffer.concat([text.subarray(at, at + mac_bytes), Buffer.from([1])])
    sum = ((sum + littleEndian(block)) * factor) % prime
  }
  const tag = (sum + littleEndian(s)) % 2n ** 128n
  return Buffer.from(tag.toString(16).padStart(2 * mac_bytes, "0"), "hex").reverse()
}

/** The three keys that restic derives from a password: one for AES-256, two for Poly1305-AES. */
const derived = (password: string, salt: Buffer, cost: Cost) => {
  const key = scryptSync(password, salt, 64, { ...cost, maxmem: memory_bytes_max })
  return { cipher: key.subarray(0, 32), k: key.subarray(32, 48), r: key.subarray(48) }
}

/** AES in counter mode, which encrypts and decrypts in the same way. */
const counted = (key: Buffer, nonce: Buffer, bytes: Buffer) =>
  createCipheriv("aes-256-ctr", key, nonce).update(bytes)

const sealed = (keys: ReturnType<typeof derived>, text: Buffer) => {
  const nonce = randomBytes(16)
  const bytes = counted(keys.cipher, nonce, text)
  const s = createCipheriv("aes-128-ecb", keys.k, null).update(nonce)
  return Buffer.concat([nonce, bytes, poly1305(keys.r, s, bytes)])
}

/** Replaces the one key file of a repository in a folder. */
export const lightenKey = (repository: string, password: string) => {
  const folder = join(repository, "keys")
  const [name = ""] = readdirSync(folder)
  const file = JSON.parse(readFileSync(join(folder, name), "utf8"))
  const data = Buffer.from(file.data, "base64")
  const { cipher } = derived(password, Buffer.from(file.salt, "base64"), file)
  const text = counted(cipher, data.subarray(0, 16), data.subarray(16, -mac_bytes))
  const salt = randomBytes(64)
  const light = {
    ...{ ...file, ...lightest },
    salt: salt.toString("base64"),
    data: sealed(derived(password, salt, lightest), text).toString("base64"),
  }
  const content = JSON.stringify(light)
  rmSync(join(folder, name))
  writeFileSync(join(folder, createHash("sha256").update(content).digest("hex")), content)
}
