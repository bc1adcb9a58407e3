/**
 * Stores live values of nodes in their own SQLite file, so that they survive a restart. Writes are
 * not synced, because the next heartbeat replaces them.
 */
import { rmSync } from "node:fs"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import type { HeartbeatStore, LiveNode } from "#actors/blob-storage/ports/live-nodes.ts"
import { NodeId } from "#schemas/blob-storage/node.ts"

const create = `
  create table if not exists live_blob_storage_node (
    node_id text primary key, used_bytes text not null, blob_count text not null,
    heard_at integer not null
  )
`

interface Row {
  readonly node_id: string
  /** Decimal digits, because SQLite's integers are limited to 2^63. */
  readonly used_bytes: string
  readonly blob_count: string
  readonly heard_at: number
}

const nodeOf = ({ node_id, used_bytes, blob_count, heard_at }: Row): LiveNode => ({
  node_id: NodeId.make(node_id),
  used_bytes: BigInt(used_bytes),
  blob_count: BigInt(blob_count),
  received_at: heard_at,
})

/**
 * Opens the file without waiting for locks, because no other process uses it. If it is corrupt, for
 * example after a power failure, it is created again.
 */
const openFile = (path: string) => {
  const open = () => {
    const file = new Sqlite(path, { timeout: 0 })
    try {
      file.pragma("journal_mode = WAL")
      file.pragma("synchronous = OFF")
      file.exec(create)
      const all = file.prepare<[], Row>("select * from live_blob_storage_node order by heard_at")
      return { file, nodes: all.all().map(nodeOf) }
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

/** A failed write only loses the value at the next restart. */
const ignoreErrors = (write: () => unknown) => {
  try {
    write()
  } catch {
    // The blob store on the same disk reports a full disk.
  }
}

/** Stores heartbeats in the file at `path` until the scope closes. */
export const sqliteLiveNodes = (path: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => openFile(path)),
      ({ file }) => Effect.sync(() => file.close()),
    ),
    ({ file, nodes }): HeartbeatStore => {
      const put = file.prepare("replace into live_blob_storage_node values (?, ?, ?, ?)")
      const remove = file.prepare("delete from live_blob_storage_node where node_id = ?")
      return {
        stored: nodes,
        save: ({ node_id, used_bytes, blob_count, received_at }) =>
          ignoreErrors(() => put.run(node_id, `${used_bytes}`, `${blob_count}`, received_at)),
        remove: (node_id) => ignoreErrors(() => remove.run(node_id)),
      }
    },
  )
