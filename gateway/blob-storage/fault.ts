/** What the blob store's errors mean to a client. Source: document 1 §7 Errors. */
import { Predicate } from "effect"
import type { BlobFault } from "#actors/blob-storage/blobs/fault.ts"
import type { BlobPutError, BlobReadError } from "#actors/blob-storage/blobs/store.ts"
import { tooFewNodes } from "#actors/blob-storage/replication.ts"
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

/** A node refuses a copy of another node with it; no client's request comes to that. */
type BlobDeletedHere = Extract<BlobFault, { readonly _tag: "BlobDeletedHere" }>
type StoreError = BlobPutError | BlobReadError | BlobDeletedHere

/** That a node is out of reach is no reason to ask again soon, but one to say so. */
const nowhere = (id: BlobId, not_asked: ReadonlyArray<string> = []) => {
  const said = `No node has the blob ${id}`
  if (not_asked.length === 0) return `${said}.`
  return `${said}; out of reach and not asked: ${not_asked.join(", ")}.`
}

/** One row per error of the store. */
const rejectionsByTag = {
  BlobNotFound: ({ id, not_asked }) => new NotFound({ detail: nowhere(id, not_asked) }),
  BlobCorrupt: ({ id }) =>
    new NotFound({
      detail: `The copy of ${id} was corrupt and is set aside; no node has another.`,
    }),
  BlobAlreadyExists: ({ detail }) => new AlreadyExists({ detail }),
  BlobIdMismatch: ({ expected, actual }) =>
    new InvalidArgument({ detail: `The content's ID is ${actual}, not ${expected}.` }),
  BlobDeletedHere: ({ id }) => new Internal({ detail: `The blob ${id} was deleted here.` }),
  BlobTooLarge: ({ bytes_max }) =>
    new TooLarge({ detail: `A blob holds at most ${bytes_max} bytes.` }),
  BlobCapacityExceeded: ({ detail }) => new ResourceExhausted({ detail }),
  BlobStoreReadOnly: ({ detail }) => new Unavailable({ detail }),
  BlobStoreFailed: ({ detail }) => new Internal({ detail }),
  BlobTooFewNodes: ({ have, need }) => tooFewNodes(have, need),
  // Both rows of the document's table fit a cluster without room; this one says what to do.
  BlobShardsFailed: ({ detail, is_full }) =>
    is_full
      ? new ResourceExhausted({ detail })
      : new Internal({ message: messages.shard_stores_failed, detail }),
  BlobUnreachable: ({ detail }) => new Unavailable({ detail }),
} satisfies { [Tag in StoreError["_tag"]]: (error: Extract<StoreError, { _tag: Tag }>) => unknown }

type Rejections = typeof rejectionsByTag

/** What an error becomes: a store's error its row's rejection, any other error itself. */
export type Worded<E> = E extends { readonly _tag: infer Tag extends StoreError["_tag"] }
  ? ReturnType<Rejections[Tag]>
  : E

const isTag = (tag: unknown): tag is StoreError["_tag"] =>
  typeof tag === "string" && Object.hasOwn(rejectionsByTag, tag)

/** Words the store's errors and leaves others as they are. */
export const worded = <E>(error: E): Worded<E> => {
  const tag: unknown = Predicate.hasProperty(error, "_tag") ? error._tag : undefined
  // Without a row it is none of the store's errors, and Worded leaves it alone.
  if (!isTag(tag)) return error as Worded<E>
  // The row of a tag takes the error with that tag, and answers what Worded says.
  const row = rejectionsByTag[tag] as unknown as (error: E) => Worded<E>
  return row(error)
}
