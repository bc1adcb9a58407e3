/**
 * Live values in SQLite, in a file of their own: what nodes last said is there again after a
 * restart. Nothing is synced, since the next heartbeat says it anew.
 */
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import type { LiveKeeper, LiveNode } from "#actors/blob-storage/live-nodes.ts"
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

/** Keeps what is heard in the file at `path` for as long as the scope lives. */
export const sqliteLiveNodes = (path: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Sqlite(path)),
      (file) => Effect.sync(() => file.close()),
    ),
    (file): LiveKeeper => {
      file.pragma("journal_mode = WAL")
      file.pragma("synchronous = OFF")
      file.exec(create)
      const all = file.prepare<[], Row>("select * from live_blob_storage_node order by heard_at")
      const put = file.prepare("replace into live_blob_storage_node values (?, ?, ?, ?)")
      const remove = file.prepare("delete from live_blob_storage_node where node_id = ?")
      return {
        kept: all.all().map(nodeOf),
        keep: ({ node_id, used_bytes, blob_count, heard_at }) =>
          void put.run(node_id, `${used_bytes}`, `${blob_count}`, heard_at),
        forget: (node_id) => void remove.run(node_id),
      }
    },
  )
