/**
 * What a put says of where it is durable, beyond the document: enough to find its fact in the log,
 * and the nodes to ask for their copies. Source: docs/decisions/0123-cluster-engine.md.
 */
import type { PutReceipt as Durable } from "#actors/blob-storage/blobs/engine.ts"
import type { PutReceipt } from "#schemas/blob-storage/blob.ts"

/** The receipt as a field of the answer; none where this node has no name. */
export const receiptOf = (
  { cursor, durable_on }: Durable,
  node_id: string | undefined,
): { readonly receipt?: PutReceipt } =>
  node_id === undefined
    ? {}
    : {
        receipt: {
          node_id,
          ...(cursor === undefined ? {} : { cursor }),
          durable_on: durable_on ?? [node_id],
        },
      }
