/**
 * A store of plain files as earlier versions left it, made by its own commands: index, files and
 * journal. What migration is tested on.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { crc32 } from "node:zlib"
import { blake3 } from "@napi-rs/blake-hash"
import Database from "better-sqlite3"
import type { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

const tables = `
  create table if not exists blobs (
    id text primary key, checksum text not null, size integer not null,
    created_at integer not null, policy text not null, labels text not null
  ) without rowid;
  create table if not exists tombstones (
    id text primary key, at integer not null
  ) without rowid;
  create table if not exists quarantined (
    id text not null, at integer not null, detail text not null, primary key (id, at)
  ) without rowid;
  create table if not exists journal (
    cursor integer primary key autoincrement, kind text not null, id text not null,
    size integer not null, checksum text not null, policy text not null, labels text,
    at integer not null, actor text not null, request_id text not null,
    correlation_id text not null
  );
  pragma user_version = 1;
`

interface Stored {
  readonly id: BlobId
  readonly checksum: string
  readonly size: number
  readonly policy: ReplicationPolicy
}

export const idOf = (bytes: Uint8Array) => blake3(bytes).toString("hex").slice(0, 32) as BlobId

const chunk_bytes = 64 * 1024

/** A blob's file: its bytes, a CRC-32 for each 64 KiB, seeded with its number, and the footer. */
export const fileWith = (bytes: Uint8Array, checksum: string) => {
  const chunks = Math.ceil(bytes.length / chunk_bytes)
  const table = Buffer.alloc(4 * chunks)
  for (let chunk = 0; chunk < chunks; chunk++) {
    const stretch = bytes.subarray(chunk * chunk_bytes, (chunk + 1) * chunk_bytes)
    table.writeUInt32LE(crc32(stretch, chunk), 4 * chunk)
  }
  const footer = Buffer.alloc(56)
  footer.write("ALMBLOB1", "latin1")
  footer.writeUInt32LE(chunk_bytes, 8)
  footer.writeBigUInt64LE(BigInt(bytes.length), 12)
  footer.write(checksum, 20, "base64")
  footer.writeUInt32LE(crc32(footer.subarray(0, 52)), 52)
  return Buffer.concat([bytes, table, footer])
}

/** The index with its times, and the rows of a blob. */
const openIndex = (dir: string) => {
  const db = new Database(join(dir, "index.sqlite"))
  db.pragma("journal_mode = WAL")
  db.exec(tables)
  // Later than what is there already, should this be opened once more.
  let at = BigInt(Date.now()) * 1_000_000n
  const next = () => {
    at += 1000n
    return at
  }
  const find = (id: BlobId) =>
    // The columns are those of the table.
    db.prepare("select * from blobs where id = ?").get(id) as Stored | undefined
  const note = (kind: string, blob: Stored, at: bigint, labels: string | null = null) => {
    const { id, checksum, size, policy } = blob
    const statement = db.prepare(
      `insert into journal
         (kind, id, size, checksum, policy, labels, at, actor, request_id, correlation_id)
       values (?, ?, ?, ?, ?, ?, ?, 'ann', 'r-1', 'c-1')`,
    )
    statement.run(kind, id, size, checksum, policy, labels, at)
  }
  /** Takes a blob out, where it is there, with a fact that says so. */
  const remove = (kind: string, id: BlobId, at: bigint) => {
    const blob = find(id)
    if (!blob) return
    db.prepare("delete from blobs where id = ?").run(id)
    note(kind, blob, at)
  }
  return { db, next, note, remove }
}

/** The store in the folder, made where it is missing. */
export const plainStore = (dir: string) => {
  for (const folder of ["blobs", "incoming", "quarantine"]) {
    mkdirSync(join(dir, folder), { recursive: true })
  }
  const { db, next, note, remove } = openIndex(dir)
  const fileOf = (id: BlobId) => join(dir, "blobs", id.slice(0, 2), id)
  const put = (
    bytes: Uint8Array,
    labels: BlobLabels = {},
    policy: ReplicationPolicy = "REPLICATION_POLICY_REPLICA3",
  ): BlobId => {
    const id = idOf(bytes)
    const checksum = blake3(bytes).toString("base64")
    const size = bytes.length
    mkdirSync(dirname(fileOf(id)), { recursive: true })
    writeFileSync(fileOf(id), fileWith(bytes, checksum))
    const at = next()
    const text = JSON.stringify(labels)
    const insert = db.prepare("insert into blobs values (?, ?, ?, ?, ?, ?)")
    insert.run(id, checksum, size, at, policy, text)
    db.prepare("delete from tombstones where id = ?").run(id)
    note("stored", { id, checksum, size, policy }, at, text)
    return id
  }
  return {
    fileOf,
    put,
    delete: (id: BlobId) => {
      const at = next()
      db.prepare("insert or replace into tombstones values (?, ?)").run(id, at)
      remove("deleted", id, at)
      rmSync(fileOf(id), { force: true })
      return at
    },
    setAside: (id: BlobId) => {
      const at = next()
      db.prepare("insert into quarantined values (?, ?, 'damaged')").run(id, at)
      remove("quarantined", id, at)
      renameSync(fileOf(id), join(dir, "quarantine", `${id}-${at}`))
      return at
    },
    acknowledge: (cursor: number) => {
      db.prepare("delete from journal where cursor <= ?").run(cursor)
    },
    setVersion: (version: number) => {
      db.pragma(`user_version = ${version}`)
    },
    close: () => {
      db.close()
    },
  }
}
