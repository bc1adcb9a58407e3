/** What a simulated network's parts share: who is on it, and how a message goes. */
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { peerCodeOf, peerFailure } from "../../peer-failure.ts"

/** A node's store as its network knows it. After a crash `isUp` of this life says no for ever. */
export interface Host {
  readonly node_id: string
  readonly engine: NodeEngine
  readonly isUp: () => boolean
  /** This node's clock, in Unix nanoseconds. */
  readonly now: () => bigint
  /** What answers `send`, `have`, `renew`, `takeBack` of others; the engine itself unless given. */
  readonly guard?: Guard
  /** What it answers to `keeps`; no to everything unless given. */
  readonly keeps?: (
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => Promise<ReadonlyArray<boolean>>
  /** The version of the ring that it knows; it says nothing of it unless given. */
  readonly ringVersion?: () => number
}

export interface Guard {
  readonly receive: NodeEngine["receive"]
  readonly copiesOf: NodeEngine["copiesOf"]
  readonly renew: NodeEngine["renew"]
  readonly rollBack: (id: BlobId, created_at: bigint) => Promise<void>
}

const told = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value)

export const failureOf = (cause: unknown) => {
  const fault = faultOf(cause)
  return peerFailure(peerCodeOf(fault), JSON.stringify(fault, told))
}

export type Sent = "arrived" | "cut" | "lost"

/** A connection that is open. */
export interface Cable {
  readonly ends: ReadonlyArray<string>
  readonly fail: (cause: Error) => void
}

/** The ways between nodes, without what is said on them. */
export interface Wires {
  readonly hostOf: (node_id: string) => Host | undefined
  readonly cables: Set<Cable>
  /** A message on its way; `arrived` says what became of it. */
  readonly carry: (from: string, to: string, arrived: (sent: Sent) => void) => void
}
