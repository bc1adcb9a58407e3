/**
 * The plain blob store's index, tombstones and journal: one SQLite database whose transaction is
 * the point at which a put or a delete has happened.
 */
import Database from "better-sqlite3"
import type { BlobOrigin, PresentBlob } from "#actors/blob-storage/blob-admission.ts"
import type { BlobFact } from "#actors/blob-storage/blob-store.ts"
import type { BlobId, BlobLabels, BlobMeta, ReplicationPolicy } from "#schemas/blob-storage/blob.ts"

/** A row of the index. */
export interface IndexedBlob extends PresentBlob {
  readonly id: BlobId
  readonly size: number
  readonly created_at: bigint
  readonly labels: BlobLabels
}

export interface IndexTotals {
  readonly used_bytes: number
  readonly blob_count: number
  readonly quarantined: number
}

/** Rises when the tables change; an index of another version stops the start. */
const schema_version = 1n

const tables = `
  create table blobs (
    id text primary key, checksum text not null, size integer not null,
    created_at integer not null, policy text not null, labels text not null
  ) without rowid;
  create table tombstones (id text primary key, at integer not null) without rowid;
  create table quarantined (
    id text not null, at integer not null, detail text not null, primary key (id, at)
  ) without rowid;
  create table journal (
    cursor integer primary key autoincrement, kind text not null, id text not null,
    size integer not null, checksum text not null, policy text not null, labels text,
    at integer not null, actor text not null, request_id text not null,
    correlation_id text not null
  );
  pragma user_version = ${schema_version};
`

const openDatabase = (path: string) => {
  const db = new Database(path, { timeout: 0 })
  // Exclusive from the first access on: a second store on the same folder is refused, not
  // corrupted.
  db.pragma("locking_mode = EXCLUSIVE")
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.defaultSafeIntegers(true)
  const version = db.pragma("user_version", { simple: true })
  if (version === 0n) db.transaction(() => db.exec(tables)).immediate()
  else if (version !== schema_version) {
    throw new Error(`the blob index has version ${version}, this program knows ${schema_version}`)
  } else db.exec("begin immediate; commit")
  return db
}

interface BlobRow {
  readonly id: BlobId
  readonly checksum: string
  readonly size: bigint
  readonly created_at: bigint
  readonly policy: ReplicationPolicy
  readonly labels: string
}

interface FactRow extends BlobOrigin {
  readonly cursor: bigint
  readonly kind: BlobFact["kind"]
  readonly id: BlobId
  readonly size: bigint
  readonly checksum: string
  readonly policy: ReplicationPolicy
  readonly labels: string | null
  readonly at: bigint
}

const indexed = (row: BlobRow): IndexedBlob => ({
  ...row,
  size: Number(row.size),
  labels: JSON.parse(row.labels),
})

const recalled = ({ labels, ...row }: FactRow): BlobFact => ({
  ...row,
  cursor: Number(row.cursor),
  size: Number(row.size),
  ...(labels === null ? {} : { labels: JSON.parse(labels) }),
})

/** What the port shows of a row. */
export const metaOf = (blob: IndexedBlob): BlobMeta => ({
  size: BigInt(blob.size),
  created_at: blob.created_at,
  modified_at: blob.created_at,
  checksum: blob.checksum,
  labels: blob.labels,
  policy: blob.policy,
})

const reads = (db: Database.Database) => {
  const find = db.prepare<[string], BlobRow>("select * from blobs where id = ?")
  const list = db
    .prepare<[string, string, string, number], BlobId>(
      "select id from blobs where id > ? and id >= ? and id < ? order by id limit ?",
    )
    .pluck()
  const each = db.prepare<[], BlobId>("select id from blobs order by id").pluck()
  const tombstone = db.prepare<[string], bigint>("select at from tombstones where id = ?").pluck()
  const scan = db.prepare<[number, number], FactRow>(
    "select * from journal where cursor > ? order by cursor limit ?",
  )
  return {
    find: (id: BlobId) => {
      const row = find.get(id)
      return row && indexed(row)
    },
    /** Identifiers in byte order; "g" is past every hex digit, so it ends the prefix's range. */
    list: (after_id: string, prefix: string, limit: number) =>
      list.all(after_id, prefix, `${prefix}g`, limit),
    ids: () => each.all(),
    tombstone: (id: BlobId) => tombstone.get(id),
    scan: (after_cursor: number, limit: number) => scan.all(after_cursor, limit).map(recalled),
  }
}

const writes = (db: Database.Database) => {
  const insert = db.prepare(
    "insert into blobs values (:id, :checksum, :size, :created_at, :policy, :labels)",
  )
  const remove = db.prepare<[string]>("delete from blobs where id = ?")
  const bury = db.prepare<[string, bigint]>("insert or replace into tombstones values (?, ?)")
  const unbury = db.prepare<[string]>("delete from tombstones where id = ?")
  const setAside = db.prepare<[string, bigint, string]>("insert into quarantined values (?, ?, ?)")
  const forget = db.prepare<[number]>("delete from journal where cursor <= ?")
  const note = db.prepare(
    `insert into journal
       (kind, id, size, checksum, policy, labels, at, actor, request_id, correlation_id)
     values (:kind, :id, :size, :checksum, :policy, :labels, :at, :actor, :request_id,
       :correlation_id)`,
  )
  const record = (
    kind: BlobFact["kind"],
    { id, size, checksum, policy, labels }: IndexedBlob,
    at: bigint,
    { actor, request_id, correlation_id }: BlobOrigin,
  ) =>
    note.run({
      ...{ kind, id, size, checksum, policy, at, actor, request_id, correlation_id },
      labels: kind === "stored" ? JSON.stringify(labels) : null,
    })
  return {
    store: (blob: IndexedBlob, origin: BlobOrigin) => {
      insert.run({ ...blob, labels: JSON.stringify(blob.labels) })
      unbury.run(blob.id)
      record("stored", blob, blob.created_at, origin)
    },
    bury: (id: BlobId, at: bigint) => bury.run(id, at),
    remove: (blob: IndexedBlob, at: bigint, origin: BlobOrigin) => {
      remove.run(blob.id)
      record("deleted", blob, at, origin)
    },
    setAside: (
      kind: "quarantined" | "lost",
      blob: IndexedBlob,
      { at, detail, origin }: { at: bigint; detail: string; origin: BlobOrigin },
    ) => {
      remove.run(blob.id)
      setAside.run(blob.id, at, detail)
      record(kind, blob, at, origin)
    },
    forget: (cursor: number) => forget.run(cursor),
  }
}

const totalsOf = (db: Database.Database): IndexTotals => {
  const row = db
    .prepare<[], { used: bigint; blobs: bigint; aside: bigint }>(
      `select coalesce(sum(size), 0) used, count(*) blobs,
         (select count(*) from quarantined) aside from blobs`,
    )
    .get()
  return {
    used_bytes: Number(row?.used ?? 0n),
    blob_count: Number(row?.blobs ?? 0n),
    quarantined: Number(row?.aside ?? 0n),
  }
}

const lastTime = (db: Database.Database) =>
  db
    .prepare<[], bigint>(
      `select max(coalesce((select max(created_at) from blobs), 0),
         coalesce((select max(at) from tombstones), 0),
         coalesce((select max(at) from quarantined), 0),
         coalesce((select max(at) from journal), 0))`,
    )
    .pluck()
    .get() ?? 0n

/** Opens the index, making it where it is missing; throws what SQLite throws. */
export const openIndex = (path: string) => {
  const db = openDatabase(path)
  let last_at = lastTime(db)
  const transaction = db.transaction((work: () => void) => work())
  return {
    ...reads(db),
    ...writes(db),
    totals: () => totalsOf(db),
    /** Runs the work as one durable transaction: all of it or, where this throws, nothing. */
    transaction: (work: () => void) => transaction.immediate(work),
    /** The given time, or the first nanosecond after the last stamp where that is later. */
    stamp: (at: bigint) => {
      last_at = at > last_at ? at : last_at + 1n
      return last_at
    },
    close: () => db.close(),
  }
}
export type BlobIndex = ReturnType<typeof openIndex>
