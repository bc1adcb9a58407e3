/**
 * The files for backups: 4,124 of them, 307 MB, a third of which is compressible. The bytes are the
 * same on each run.
 */
import { createCipheriv } from "node:crypto"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"

const small_files = 4000
const small_bytes = 8 * 1024
const middle_files = 120
const middle_bytes = 2 ** 20
const large_files = 4
const large_bytes = 32 * 2 ** 20
const files_per_folder = 100
export const files_total = small_files + middle_files + large_files

/** Incompressible bytes, generated from a seed. */
const noise = (seed: number, bytes: number) => {
  const nonce = Buffer.alloc(16)
  nonce.writeUInt32BE(seed)
  return createCipheriv("aes-128-ctr", Buffer.alloc(16), nonce).update(Buffer.alloc(bytes))
}

const line = (file: number) =>
  `2026-11-22T00:00:00Z host-${file % 17} service[${file}]: ` +
  `request ${file * 7919} took ${file % 97} ms\n`

const text = (file: number) => line(file).repeat(Math.ceil(small_bytes / line(file).length))

const halfNoise = (seed: number) => {
  const bytes = noise(seed, large_bytes)
  bytes.fill(0x20, 0, large_bytes / 2)
  return bytes
}

/** Fills a folder, which may already exist; returns the number of bytes. */
export const makeShareFiles = async (folder: string): Promise<number> => {
  let bytes = 0
  const write = async (name: string, content: string | Uint8Array) => {
    bytes += Buffer.byteLength(content)
    await writeFile(join(folder, name), content)
  }
  for (let file = 0; file < small_files; file++) {
    const sub = `logs/${Math.floor(file / files_per_folder)}`
    if (file % files_per_folder === 0) await mkdir(join(folder, sub), { recursive: true })
    await write(`${sub}/${file}.log`, text(file))
  }
  await mkdir(join(folder, "images"), { recursive: true })
  for (let file = 0; file < middle_files; file++) {
    await write(`images/${file}.bin`, noise(file, middle_bytes))
  }
  for (let file = 0; file < large_files; file++) {
    await write(`disk-${file}.img`, halfNoise(middle_files + file))
  }
  return bytes
}
