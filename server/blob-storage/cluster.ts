/** This node in its cluster: requests to other nodes, responses to them, and repair. */
import { readFile } from "node:fs/promises"
import type { Duplex } from "node:stream"
import { rootCertificates, TLSSocket } from "node:tls"
import { Clock, Effect, Redacted } from "effect"
import {
  isUpToDate,
  type MembersCache,
  type Reach,
  withReach,
} from "#actors/blob-storage/members.ts"
import type { NodeEngine } from "#actors/blob-storage/ports/node-engine.ts"
import type { Members } from "#actors/blob-storage/ports/peers.ts"
import { findingsOf, progressOf } from "#actors/blob-storage/ports/repair-progress.ts"
import { erasureTools } from "#adapters/blob-storage/erasure.ts"
import { machineTiming } from "#adapters/blob-storage/machine-timing.ts"
import { type PeerCallOptions, peerCalls } from "#adapters/blob-storage/peer/call.ts"
import { peerEndpoint } from "#adapters/blob-storage/peer/endpoint.ts"
import { type PeerStore, peerHandler } from "#adapters/blob-storage/peer/handler.ts"
import { peersLink } from "#adapters/blob-storage/peers/link.ts"
import { clientCertificate } from "#adapters/identity/static.ts"
import { threadRest } from "#adapters/thread-share.ts"
import type { ErasureParts } from "#cluster"
import { clusterEngine, peerFailure, rebuildShards, repair, rollbackGuard } from "#cluster"
import { Log } from "#events/log.ts"
import { watchFiles } from "#files"
import { ListenFailure, tlsFiles } from "#http"
import type { Settings } from "#schemas/settings.ts"

export interface NodeOptions {
  readonly settings: Settings
  readonly node_id: string
  readonly held: MembersCache
}

/**
 * Options to join a cluster. `lastHeartbeat` returns the time of a node's last heartbeat in epoch
 * ms.
 */
export interface JoinOptions extends NodeOptions {
  readonly lastHeartbeat: (node_id: string) => number | undefined
}

/** True if this node can authenticate itself; otherwise every node rejects it. */
const hasProof = ({ cluster, tls }: Settings) =>
  Redacted.value(cluster.secret) !== "" || tls.client_ca !== ""

/**
 * Decides if a get waits for a node's response. The watchdog does not cover leaving nodes: a silent
 * one would turn every 404 into 503 permanently. It still gets requests, because missing heartbeats
 * may only mean that the bus is down.
 */
const reachDecider = ({ settings, lastHeartbeat }: JoinOptions, now: () => number) => {
  const has_proof = hasProof(settings)
  const silent_ms = settings.cluster.heartbeat_deadline_seconds * 1000
  const since = now()
  return (node_id: string, state: "active" | "leaving"): Reach => {
    if (!has_proof) return "never"
    const is_recent = now() - Math.max(since, lastHeartbeat(node_id) ?? 0) < silent_ms
    return state === "active" || is_recent ? "reached" : "unheard"
  }
}

const no_proof = "this node has neither cluster.secret nor tls.client_ca and contacts no other node"
/** Sends no request: a node without proof must not make this one wait for any address. */
const refuse = () => Promise.reject(peerFailure("UNAUTHENTICATED", no_proof))

const readPem = (path: string, name: string) =>
  Effect.tryPromise({
    try: () => readFile(path),
    catch: () => new ListenFailure({ message: `tls.${name}: cannot read ${path}` }),
  })

/**
 * TLS options for requests to other nodes, if this node serves TLS. Their certificates must be
 * signed by an authority of this machine or by `tls.client_ca`, or be this node's own, if all share
 * one. Without a secret this node presents its own certificate.
 */
const callerTls = Effect.fnUntraced(function* ({ tls, cluster }: Settings) {
  if (tls.cert === "") return undefined
  const cert = yield* readPem(tls.cert, "cert")
  const client_ca = tls.client_ca === "" ? [] : [yield* readPem(tls.client_ca, "client_ca")]
  const ca = [...rootCertificates, cert, ...client_ca]
  if (Redacted.value(cluster.secret) !== "" || client_ca.length === 0) return { ca }
  return { ca, cert, key: yield* readPem(tls.key, "key") }
})

/** The client to the other nodes, until the scope closes. */
export const openCalls = Effect.fnUntraced(function* ({ settings, node_id }: NodeOptions) {
  const { name, secret } = settings.cluster
  const whenChanged = yield* watchFiles(tlsFiles(settings.tls))
  const tls = yield* callerTls(settings)
  const options: PeerCallOptions = {
    cluster: name,
    secret: Redacted.value(secret),
    node_id,
    ...(tls && { tls }),
  }
  const calls = yield* Effect.acquireRelease(
    Effect.sync(() => peerCalls(options)),
    ({ close }) => Effect.promise(close),
  )
  const again = Effect.flatMap(callerTls(settings), (read) =>
    Effect.try(() => read && calls.setTls(read)),
  )
  // The listener reads the same files and reports errors in them.
  yield* whenChanged(Effect.ignore(again))
  return calls
})

const namesOf = (socket: Duplex) =>
  socket instanceof TLSSocket ? (clientCertificate(socket)?.subjects ?? []) : []

/** The endpoint for other nodes, available from startup; `store` is undefined until it is open. */
export const nodeDoor = Effect.fnUntraced(function* (
  { settings, held }: NodeOptions,
  store: () => PeerStore | undefined,
) {
  const clock = yield* Clock.Clock
  const answering = peerHandler({ store, now: () => clock.currentTimeNanosUnsafe() })
  return peerEndpoint({
    cluster: settings.cluster.name,
    secret: Redacted.value(settings.cluster.secret),
    handlerFor: (_, version) => answering(version),
    namesOf,
    isNode: held.isNode,
  })
})

/** The problem if most other nodes are incompatible: a single one must not affect all others. */
const apartFromMost = (
  { node_id, active }: Members,
  apartFrom: (address: string) => string | undefined,
) => {
  const others = active.filter((peer) => peer.node_id !== node_id)
  const problems = others.flatMap(({ address }) => apartFrom(address) ?? [])
  return problems.length * 2 > others.length ? problems[0] : undefined
}

/** Joins this node's store with those of the other nodes, until the scope closes. */
export const joinNodes = Effect.fnUntraced(function* (options: JoinOptions, local: NodeEngine) {
  const { settings, held } = options
  const clock = yield* Clock.Clock
  const timing = machineTiming(clock)
  const log = yield* Log
  const context = yield* Effect.context<never>()
  const run = Effect.runForkWith(context)
  const report = (problem: string) => void run(Effect.logWarning(problem))
  const calls = yield* openCalls(options)
  const peers = peersLink(hasProof(settings) ? calls : { ...calls, to: refuse, call: refuse })
  const guard = rollbackGuard(local, timing)
  const parts: ErasureParts = {
    local,
    guard,
    peers,
    members: held.members,
    timing,
    ...erasureTools(),
  }
  const { sweep_seconds, repair_bytes_per_second } = settings.cluster
  const repairs = repair({
    local,
    guard,
    peers,
    members: held.members,
    timing,
    report,
    isCurrent: () => Effect.runPromiseWith(context)(isUpToDate(log, settings.cluster.name, held)),
    rebuild: (order) => rebuildShards(parts, order),
    sweep_seconds,
    repair_bytes_per_second,
    pauseAfter: threadRest().after,
  })
  const reachOf = reachDecider(options, () => clock.currentTimeMillisUnsafe())
  const reachable = () => withReach(held.members(), reachOf)
  const is_closed = !hasProof(settings)
  const engine = clusterEngine({
    ...parts,
    readMembers: reachable,
    hint: repairs.hint,
    report,
    is_closed,
  })
  const ringVersion = () => held.members().ring_version
  const answers: PeerStore = { local, guard, keeps: repairs.keeps, ringVersion }
  yield* Effect.acquireRelease(Effect.sync(repairs.start), () => Effect.promise(repairs.stop))
  return {
    engine,
    answers,
    /** Why most other nodes, which run another release, are incompatible. */
    apart: () => apartFromMost(held.members(), calls.mismatchWith),
    /** The repair progress for heartbeats. */
    progress: () => progressOf(repairs.progress(), engine.counts()),
    /** The result of the last sweeps for blobs that lack copies. */
    checked: () => findingsOf(repairs.progress()),
  }
})
