/** Types shared by the parts of the simulated network: hosts, connections and messages. */
import { faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { peerCodeOf, peerFailure } from "../../peer-failure.ts"

/** A node as its network sees it. After a crash, this life's `isUp` returns false forever. */
export interface Host {
  readonly node_id: string
  readonly engine: NodeEngine
  readonly isUp: () => boolean
  /** This node's clock, in Unix nanoseconds. */
  readonly now: () => bigint
  /** Handles other nodes' `send`, `copiesOf`, `renew` and `rollBack`; default: the engine. */
  readonly guard?: Guard
  /** Answers `keeps`; default: no. */
  readonly keeps?: (
    ids: ReadonlyArray<BlobId>,
    ring_version: number,
    is_read: boolean,
  ) => Promise<ReadonlyArray<boolean>>
  /** The ring version that it knows; if absent, it does not respond to queries for it. */
  readonly ringVersion?: () => number
}

export interface Guard {
  readonly receive: NodeEngine["receive"]
  readonly copiesOf: NodeEngine["copiesOf"]
  readonly renew: NodeEngine["renew"]
  readonly rollBack: (id: BlobId, created_at: bigint) => Promise<void>
}

const replacer = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value)

export const failureOf = (cause: unknown) => {
  const fault = faultOf(cause)
  return peerFailure(peerCodeOf(fault), JSON.stringify(fault, replacer))
}

export type Delivery = "arrived" | "cut" | "lost"

/** An open connection. */
export interface Link {
  readonly ends: ReadonlyArray<string>
  readonly fail: (cause: Error) => void
}

/** The links between nodes. */
export interface Wires {
  readonly hostOf: (node_id: string) => Host | undefined
  readonly links: Set<Link>
  /** Sends a message; `arrived` receives its outcome. */
  readonly send: (from: string, to: string, arrived: (sent: Delivery) => void) => void
}
