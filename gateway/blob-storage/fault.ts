/** The rejections that clients get for faults of the blob store. Source: document 1 §7 Errors. */
import { Effect } from "effect"
import type { BlobFault } from "#actors/blob-storage/ports/fault.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import {
  AlreadyExists,
  Internal,
  InvalidArgument,
  messages,
  NotFound,
  ResourceExhausted,
  TooLarge,
  Unavailable,
} from "#schemas/blob-storage/rejection.ts"
import { tooFewNodes } from "#schemas/blob-storage/replication.ts"

/** An unreachable node does not make this a 503, but the detail names it. */
const nowhere = (id: BlobId, not_asked: ReadonlyArray<string> = []) => {
  const text = `No node has the blob ${id}`
  if (not_asked.length === 0) return `${text}.`
  return `${text}; offline and not queried: ${not_asked.join(", ")}.`
}

/** One row per fault. */
const rejectionsByTag = {
  BlobNotFound: ({ id, not_asked }) => new NotFound({ detail: nowhere(id, not_asked) }),
  BlobCorrupt: ({ id }) =>
    new NotFound({
      detail: `The copy of ${id} was corrupt and is set aside; no node has another.`,
    }),
  BlobAlreadyExists: ({ detail }) => new AlreadyExists({ detail }),
  BlobIdMismatch: ({ expected, actual }) =>
    new InvalidArgument({ detail: `The content's ID is ${actual}, not ${expected}.` }),
  // Only for copies between nodes: no client's request causes it.
  BlobDeletedHere: ({ id }) => new Internal({ detail: `The blob ${id} was deleted on this node.` }),
  BlobTooLarge: ({ bytes_max }) =>
    new TooLarge({ detail: `The blob is larger than ${bytes_max} bytes.` }),
  BlobCapacityExceeded: ({ detail }) => new ResourceExhausted({ detail }),
  BlobStoreReadOnly: ({ detail }) => new Unavailable({ detail }),
  BlobStoreFailed: ({ detail }) => new Internal({ detail }),
  BlobTooFewNodes: ({ have, need }) => tooFewNodes(have, need),
  // Two rows of the document's table match a full cluster; this one is more helpful to the client.
  BlobShardsFailed: ({ detail, is_full }) =>
    is_full
      ? new ResourceExhausted({ detail })
      : new Internal({ message: messages.shard_stores_failed, detail }),
  BlobUnreachable: ({ detail }) => new Unavailable({ detail }),
} satisfies { [Tag in BlobFault["_tag"]]: (fault: Extract<BlobFault, { _tag: Tag }>) => unknown }

type Rejections = typeof rejectionsByTag
type RejectionOf<Fault extends BlobFault> = ReturnType<Rejections[Fault["_tag"]]>

/** Returns the rejection for a fault. */
export const toRejection = <Fault extends BlobFault>(fault: Fault): RejectionOf<Fault> => {
  // The row for a tag takes a fault with that tag, and returns the type that Worded states.
  const row = rejectionsByTag[fault._tag] as unknown as (fault: Fault) => RejectionOf<Fault>
  return row(fault)
}

/**
 * Turns the engine's faults into rejections, for endpoints about many blobs. There, a fault of a
 * single blob is a defect, because these endpoints do not declare its rejection.
 */
export const rejected = <A, R>(answer: Effect.Effect<A, BlobFault, R>) =>
  answer.pipe(
    Effect.catchTag(
      ["BlobNotFound", "BlobCorrupt", "BlobAlreadyExists", "BlobTooFewNodes"],
      Effect.die,
    ),
    Effect.mapError(toRejection),
  )
