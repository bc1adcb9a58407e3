/** What another node's refusal or absence is to this one. */

/** Why an exchange ended: the other side says so, or the connection is gone. */
export interface PeerFailure extends Error {
  /** A gRPC status name, such as NOT_FOUND. */
  readonly code: string
}

const name = "PeerFailure"

export const peerFailure = (code: string, detail: string): PeerFailure =>
  Object.assign(new Error(detail), { name, code })

export const isPeerFailure = (cause: unknown): cause is PeerFailure =>
  cause instanceof Error && cause.name === name
