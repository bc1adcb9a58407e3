/** The real software of a node, wired like the server, on the simulated network and clock. */
import type { BlobEngine, PutOrder } from "#actors/blob-storage/ports/engine.ts"
import { blobHasher } from "#adapters/blob-storage/blob-hasher.ts"
import { type ErasureCode, erasureCode, unit_bytes } from "#erasure"
import type { ErasureParts } from "../../erasure/layout.ts"
import { rebuildShards } from "../../erasure/rebuild.ts"
import type { Hint } from "../../repair/hint.ts"
import { repair } from "../../repair/repair.ts"
import { clusterEngine } from "../../replicas/engine.ts"
import { rollbackGuard } from "../../rollback.ts"
import { poisoningPool } from "./piece-pool.ts"
import {
  release_after_seconds,
  type Software,
  type SoftwareParts,
  sweep_seconds,
} from "./software.ts"

/**
 * As `cluster.heartbeat_interval_seconds`: a leaving node reports its progress at this interval.
 */
const beat_ms = 5000
/** As `cluster.repair_bytes_per_second`. */
const repair_bytes_per_second = 50 * 1024 * 1024

const codes = new Map<number, ErasureCode>()

/** One code for all nodes, because each use of it completes synchronously. */
const openCode = (data_shards: number) => {
  const code = codes.get(data_shards) ?? erasureCode(data_shards, unit_bytes)
  codes.set(data_shards, code)
  return code
}

const { pool } = poisoningPool()

/** A third of the blobs is uploaded in pieces of at most this many bytes. */
const piecemeal_every = 3
const piece_bytes = 50_000

/** A put in pieces, like that of a stream. */
const putPieces = async (
  engine: Pick<BlobEngine, "upload">,
  order: PutOrder,
  parts: ReadonlyArray<Uint8Array>,
  at: bigint,
) => {
  const upload = engine.upload(order, undefined)
  try {
    for (const part of parts) {
      for (let from = 0; from < part.length; from += piece_bytes) {
        await upload.write(part.slice(from, from + piece_bytes))
      }
    }
    return await upload.finish(at)
  } finally {
    await upload.abort()
  }
}

export const real = (options: SoftwareParts): Software => {
  const { local, peers, members, isCurrent, timing, confirmLeave, report } = options
  const guard = rollbackGuard(local, timing)
  const hint: Hint = (of) => keeper.hint(of)
  const parts: ErasureParts = {
    local,
    guard,
    peers,
    members,
    timing,
    openCode,
    hasher: blobHasher,
    pool,
    onShortfall: (id) => hint({ id, why: "missing", nodes: [] }),
  }
  const keeper = repair({
    local,
    guard,
    peers,
    members,
    isCurrent,
    timing,
    report,
    sweep_seconds,
    repair_bytes_per_second,
    release_after_seconds,
    rebuild: (order) => rebuildShards(parts, order),
  })
  const engine = clusterEngine({ ...parts, hint, report })

  /** A heartbeat's content, and its effect on the membership. */
  const heartbeat = async () => {
    if (members().is_leaving) {
      const { blob_count } = await local.usage()
      if (blob_count === 0 && keeper.progress().pending_migrations === 0) confirmLeave()
    }
    timing.after(beat_ms, () => void heartbeat())
  }
  return {
    guard,
    put: (order, parts, at) => {
      const size = parts.reduce((sum, { length }) => sum + length, 0)
      return size % piecemeal_every === 0
        ? putPieces(engine, order, parts, at)
        : engine.put(order, parts, at)
    },
    get: engine.get,
    delete: (id, origin, at) => engine.delete(id, origin, at),
    deleteClusterWide: (id, origin, at) => engine.delete(id, origin, at, "cluster"),
    keeps: keeper.keeps,
    start: () => {
      keeper.start()
      timing.after(beat_ms, () => void heartbeat())
    },
  }
}
