/**
 * Live values in SQLite, in a file of their own: what nodes last said is there again after a
 * restart. Nothing is synced, since the next heartbeat says it anew.
 */
import { rmSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import type { LiveKeeper, LiveNode } from "#actors/blob-storage/ports/live-nodes.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"

const create = `
  create table if not exists live_blob_storage_node (
    node_id text primary key, used_bytes text not null, blob_count text not null,
    heard_at integer not null
  )
`

interface Row {
  readonly node_id: string
  /** Decimal digits: SQLite's integers end at 2^63. */
  readonly used_bytes: string
  readonly blob_count: string
  readonly heard_at: number
}

const nodeOf = ({ node_id, used_bytes, blob_count, heard_at }: Row): LiveNode => ({
  node_id: NodeId.make(node_id),
  used_bytes: BigInt(used_bytes),
  blob_count: BigInt(blob_count),
  heard_at,
})

/**
 * Nobody else has the file, so that nothing is waited for. Where it is no database any more, as a
 * power cut may leave what is not synced, it begins anew.
 */
const opened = (path: string) => {
  const open = () => {
    const file = new Sqlite(path, { timeout: 0 })
    try {
      file.pragma("journal_mode = WAL")
      file.pragma("synchronous = OFF")
      file.exec(create)
      const all = file.prepare<[], Row>("select * from live_blob_storage_node order by heard_at")
      return { file, kept: all.all().map(nodeOf) }
    } catch (cause) {
      file.close()
      throw cause
    }
  }
  try {
    return open()
  } catch {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
    return open()
  }
}

/** What the disk does not take is not known after a restart, and that is all. */
const ifTaken = (write: () => unknown) => {
  try {
    write()
  } catch {
    // Of a full disk, the store that is on it too says so.
  }
}

/** Keeps what is heard in the file at `path` for as long as the scope lives. */
export const sqliteLiveNodes = (path: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => opened(path)),
      ({ file }) => Effect.sync(() => file.close()),
    ),
    ({ file, kept }): LiveKeeper => {
      const put = file.prepare("replace into live_blob_storage_node values (?, ?, ?, ?)")
      const remove = file.prepare("delete from live_blob_storage_node where node_id = ?")
      return {
        kept,
        keep: ({ node_id, used_bytes, blob_count, heard_at }) =>
          ifTaken(() => put.run(node_id, `${used_bytes}`, `${blob_count}`, heard_at)),
        forget: (node_id) => ifTaken(() => remove.run(node_id)),
      }
    },
  )
