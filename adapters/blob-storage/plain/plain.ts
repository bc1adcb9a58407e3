/**
 * The store of plain files that came before the volume, as far as migration needs it: its rows,
 * its blobs with every byte verified, and its journal.
 *
 * A file per blob in `blobs/`, an SQLite index beside them, copies that were set aside in
 * `quarantine/`. Source: docs/decisions/0111-blob-migration.md.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import type { BlobOrigin } from "#actors/blob-storage/blobs/admission.ts"
import { store_origin } from "#actors/blob-storage/blobs/admission.ts"
import { faultOf } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobFact } from "#actors/blob-storage/blobs/store.ts"
import type { BlobId, BlobLabels, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"
import { readPlainFile } from "./file.ts"

/** The only version of the index that there ever was. */
const schema_version = 1

export interface PlainBlob {
  readonly id: BlobId
  readonly checksum: string
  readonly size: number
  readonly created_at: bigint
  readonly policy: ReplicationPolicy
  readonly labels: BlobLabels
}

export interface PlainTombstone {
  readonly id: BlobId
  readonly at: bigint
}

/** A copy that was set aside, or that was found to be gone. */
export interface PlainQuarantined {
  readonly id: BlobId
  readonly at: bigint
  readonly detail: string
}

export interface PlainTotals {
  readonly blobs: number
  readonly bytes: number
  readonly tombstones: number
  readonly quarantined: number
}

export const plainPlaces = (dir: string) => ({
  index: join(dir, "index.sqlite"),
  blobs: join(dir, "blobs"),
  incoming: join(dir, "incoming"),
  quarantine: join(dir, "quarantine"),
  reserve: join(dir, "reserve"),
})

/** Whether such a store is in the folder. */
export const hasPlain = (dir: string) => existsSync(plainPlaces(dir).index)

type Row<A> = { readonly [Key in keyof A]: A[Key] extends number ? bigint : A[Key] }

const openDatabase = (path: string) => {
  const db = new Database(path, { timeout: 0, fileMustExist: true })
  // As the store itself did: whoever else has it open, or opens it, is refused.
  db.pragma("locking_mode = EXCLUSIVE")
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.defaultSafeIntegers(true)
  const version = Number(db.pragma("user_version", { simple: true }))
  if (version !== schema_version) {
    throw new Error(`the blob index has version ${version}, this program knows ${schema_version}`)
  }
  db.exec("begin immediate; commit")
  return db
}

const rowsOf = (db: Database.Database) => {
  type BlobRow = Row<Omit<PlainBlob, "labels">> & { readonly labels: string }
  const blobs = db.prepare<[string, number], BlobRow>(
    "select * from blobs where id > ? order by id limit ?",
  )
  const has = db.prepare<[string], bigint>("select 1 from blobs where id = ?").pluck()
  const tombstones = db.prepare<[string, number], PlainTombstone>(
    "select id, at from tombstones where id > ? order by id limit ?",
  )
  const quarantined = db.prepare<[number, number], PlainQuarantined>(
    "select id, at, detail from quarantined order by at, id limit ? offset ?",
  )
  const totals = db.prepare<[], Row<PlainTotals>>(
    `select count(*) blobs, coalesce(sum(size), 0) bytes,
       (select count(*) from tombstones) tombstones,
       (select count(*) from quarantined) quarantined from blobs`,
  )
  return {
    blobs: (after_id: string, limit: number) =>
      blobs
        .all(after_id, limit)
        .map(
          (row): PlainBlob => ({ ...row, size: Number(row.size), labels: JSON.parse(row.labels) }),
        ),
    has: (id: BlobId) => has.get(id) !== undefined,
    tombstones: (after_id: string, limit: number) => tombstones.all(after_id, limit),
    /** In the order in which they were set aside, without the first `skip`. */
    quarantined: (skip: number, limit: number) => quarantined.all(limit, skip),
    totals: (): PlainTotals => {
      const row = totals.get()
      const number = (name: keyof PlainTotals) => Number(row?.[name] ?? 0n)
      return {
        blobs: number("blobs"),
        bytes: number("bytes"),
        tombstones: number("tombstones"),
        quarantined: number("quarantined"),
      }
    },
  }
}

type FactRow = Row<Omit<BlobFact, "labels">> & BlobOrigin & { readonly labels: string | null }

const recalled = ({ labels, ...row }: FactRow): BlobFact => ({
  ...row,
  cursor: Number(row.cursor),
  size: Number(row.size),
  ...(labels === null ? {} : { labels: JSON.parse(labels) }),
})

const journalOf = (db: Database.Database) => {
  const scan = db.prepare<[number, number], FactRow>(
    "select * from journal where cursor > ? order by cursor limit ?",
  )
  const forget = db.prepare<[number]>("delete from journal where cursor <= ?")
  const last = db
    .prepare<[], bigint>("select seq from sqlite_sequence where name = 'journal'")
    .pluck()
  return {
    scan: (after_cursor: number, limit: number) => scan.all(after_cursor, limit).map(recalled),
    acknowledge: (cursor: number) => void forget.run(cursor),
    /** The cursor of the last fact there ever was; 0 before the first. */
    cursor: () => Number(last.get() ?? 0n),
  }
}

/** Takes a row out and notes why, as the store did it: in one transaction. */
const setAsideIn = (db: Database.Database) => {
  const remove = db.prepare<[string]>("delete from blobs where id = ?")
  const insert = db.prepare<[string, bigint, string]>("insert into quarantined values (?, ?, ?)")
  const note = db.prepare(
    `insert into journal
       (kind, id, size, checksum, policy, labels, at, actor, request_id, correlation_id)
     values (:kind, :id, :size, :checksum, :policy, null, :at, :actor, :request_id,
       :correlation_id)`,
  )
  const last = db
    .prepare<[], bigint>(
      `select max(coalesce((select max(created_at) from blobs), 0),
         coalesce((select max(at) from tombstones), 0),
         coalesce((select max(at) from quarantined), 0),
         coalesce((select max(at) from journal), 0))`,
    )
    .pluck()
  return db.transaction(
    (kind: "quarantined" | "lost", blob: PlainBlob, detail: string, now: bigint) => {
      const before = last.get() ?? 0n
      const at = now > before ? now : before + 1n
      const { id, checksum, size, policy } = blob
      remove.run(id)
      insert.run(id, at, detail)
      note.run({ kind, id, checksum, size, policy, at, ...store_origin })
    },
  )
}

/**
 * Opens the store for this process alone; throws where another has it, or its index is of another
 * version. Nothing is changed but by `setAside` and `acknowledge`.
 */
export const openPlain = (dir: string) => {
  const places = plainPlaces(dir)
  const db = openDatabase(places.index)
  const setAside = setAsideIn(db)
  const pathOf = ({ id }: PlainBlob) => join(places.blobs, id.slice(0, 2), id)
  return {
    ...rowsOf(db),
    ...journalOf(db),
    /** The blob's bytes, verified; throws a fault BlobCorrupt before any that are not. */
    read: (blob: PlainBlob) => readPlainFile(pathOf(blob), blob),
    /** Takes a blob out whose file is damaged or gone, with a fact that says so. */
    setAside: (blob: PlainBlob, cause: unknown, now: bigint) => {
      const fault = faultOf(cause)
      const detail = "detail" in fault ? fault.detail : fault._tag
      setAside.immediate(existsSync(pathOf(blob)) ? "quarantined" : "lost", blob, detail, now)
    },
    close: () => void db.close(),
  }
}
export type PlainStore = ReturnType<typeof openPlain>
