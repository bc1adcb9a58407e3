/**
 * Connections to other nodes: one for each, made on first use and kept open. After a failure there
 * is a pause before the next attempt, so that requests fail fast.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService.
 */
import { Agent, type IncomingMessage, request } from "node:http"
import { request as requestTls, Agent as TlsAgent } from "node:https"
import type { Duplex } from "node:stream"
import { createSecureContext, type SecureContext } from "node:tls"
import { isPeerFailure, peerFailure } from "#cluster"
import { causeText } from "#schemas/cause-text.ts"
import { link_path, link_protocol, readChallenge, writeProof } from "./endpoint.ts"
import { type Body, clientLink, type PeerLink, type ReceivedResponse } from "./link.ts"
import { isProof, newNonce, proofOf } from "./proof.ts"
import {
  type LinkVersions,
  link_versions,
  readVersions,
  sharedVersion,
  version_header,
  versionMismatch,
  writeVersions,
} from "./version.ts"

/** Timeout for connecting and authenticating, in milliseconds. */
const connect_ms_max = 3000

/** Pause after a failed attempt, in milliseconds. */
const pause_ms = 500

/**
 * How long requests wait for a node that was unreachable before, in milliseconds. A node that is
 * online again responds sooner; if the machine is off, the attempt times out.
 */
const retry_wait_ms_max = 200

export interface PeerCallOptions {
  readonly cluster: string
  readonly secret: string
  /** This node. */
  readonly node_id: string
  /**
   * TLS settings, or undefined for plain TCP: the trusted authorities, and this node's certificate.
   * Without a secret, the certificate authenticates this node.
   */
  readonly tls?: {
    readonly ca: ReadonlyArray<Buffer | string>
    readonly cert?: Buffer
    readonly key?: Buffer
  }
  /** Supported protocol versions; default: all of this release. */
  readonly versions?: LinkVersions
}

/** An authenticated connection and its protocol version. */
export interface Connection {
  readonly version: number
  readonly call: PeerLink["call"]
}

interface Link extends Connection {
  readonly link: PeerLink
}

const unavailable = (detail: string) => peerFailure("UNAVAILABLE", detail)

/** The status if there is no common protocol version. */
const upgrade_required = 426
/** The status of a successful upgrade to a link. */
const switching = 101

const agent_options = { keepAlive: true, maxSockets: 1 }

/** The TLS context, shared because creating one takes milliseconds. */
const contextOf = (tls: NonNullable<PeerCallOptions["tls"]>) =>
  // Node does not modify the list.
  createSecureContext({ ...tls, ca: [...tls.ca] })

/** Negotiates the protocol version; reports a mismatch if there is no common version. */
const versionsOver = (
  address: string,
  ours: LinkVersions,
  reportMismatch: (detail: string | undefined) => void,
) => {
  const versionWith = ({ headers }: IncomingMessage) => {
    const theirs = readVersions(headers[version_header])
    const version = sharedVersion(ours, theirs)
    reportMismatch(version === undefined ? versionMismatch(address, theirs, ours) : undefined)
    return version
  }
  return {
    /** Why the other node, or this one, refused to upgrade the connection. */
    rejectionOf: (response: IncomingMessage) => {
      if (response.statusCode !== upgrade_required && response.statusCode !== switching) {
        const detail = `${address} rejected this node: is its secret or cluster different?`
        return peerFailure("UNAUTHENTICATED", detail)
      }
      versionWith(response)
      return unavailable(`${address} runs a release that shares no protocol version with this node`)
    },
    /**
     * The link over an upgraded connection. Without a common version, closes the connection and
     * returns undefined.
     */
    linkOver: (response: IncomingMessage, socket: Duplex): Link | undefined => {
      const version = versionWith(response)
      if (version === undefined) {
        socket.destroy()
        return undefined
      }
      const link = clientLink(socket)
      return { version, call: link.call, link }
    },
  }
}
type Versions = ReturnType<typeof versionsOver>

/**
 * Authenticates with two requests on one connection: the first gets the nonce, the second sends the
 * proof. Without a secret, one request is enough, and the certificate is the proof.
 */
const connectTo = (
  { cluster, secret, node_id, tls, versions = link_versions }: PeerCallOptions,
  { rejectionOf, linkOver }: Versions,
  secureContext: SecureContext | undefined,
  closing: AbortSignal,
  address: string,
) => {
  const agent = secureContext
    ? new TlsAgent({ ...agent_options, secureContext })
    : new Agent(agent_options)
  const send = secureContext ? requestTls : request
  const url = `${secureContext ? "https" : "http"}://${address}${link_path}`
  const signal = AbortSignal.any([closing, AbortSignal.timeout(connect_ms_max)])
  const is_certified = secret === "" && tls?.cert !== undefined

  const challenge = () =>
    new Promise<string>((resolve, reject) => {
      const outgoing = send(url, { agent, signal }, (response) => {
        response.resume().on("end", () => {
          const nonce = readChallenge(response.headers["www-authenticate"])
          if (nonce !== undefined) resolve(nonce)
          else
            reject(unavailable(`${address} is not an Almanac node: status ${response.statusCode}`))
        })
      })
      outgoing.on("error", reject).end()
    })
  const upgrade = (called_nonce: string) =>
    new Promise<Link>((resolve, reject) => {
      const caller_nonce = newNonce()
      const handshake = { cluster, caller: node_id, caller_nonce, called_nonce }
      const proof = proofOf(secret, "caller", handshake)
      const headers = {
        ...(!is_certified && { authorization: writeProof(node_id, caller_nonce, proof) }),
        connection: "Upgrade",
        upgrade: link_protocol,
        [version_header]: writeVersions(versions),
      }
      const outgoing = send(url, { agent, signal, headers }, (response) => {
        response.resume()
        reject(rejectionOf(response))
      })
      outgoing.on("upgrade", (response: IncomingMessage, socket: Duplex, head: Buffer) => {
        const proof_header = response.headers["x-almanac-proof"]
        const is_proven =
          typeof proof_header === "string" && isProof(secret, "called", handshake, proof_header)
        // Without a secret, TLS has authenticated the other node.
        if (!is_proven && !is_certified) {
          socket.destroy()
          reject(peerFailure("UNAUTHENTICATED", `${address} could not authenticate itself`))
          return
        }
        socket.unshift(head)
        const link = linkOver(response, socket)
        if (link === undefined) reject(rejectionOf(response))
        else resolve(link)
      })
      outgoing.on("error", reject).end()
    })
  return (is_certified ? upgrade("") : challenge().then(upgrade)).catch((cause: unknown) => {
    agent.destroy()
    if (isPeerFailure(cause)) throw cause
    const why = causeText(cause)
    throw unavailable(`${address} cannot be reached: ${why}`)
  })
}

interface LinkEntry {
  readonly link: Promise<Link>
  /** Whether the previous attempt failed and this one has not succeeded yet. */
  is_retry: boolean
  failed_at: number | undefined
}

/** The link, or a failure if it is not ready soon. The attempt continues for later requests. */
const linkWithin = async (link: Promise<Link>, address: string) => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_, reject) => {
    const failure = unavailable(`${address} is not reachable yet`)
    timer = setTimeout(() => reject(failure), retry_wait_ms_max)
  })
  try {
    return await Promise.race([link, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Links to nodes by their address. */
export const peerCalls = (options: PeerCallOptions) => {
  const known = new Map<string, LinkEntry>()
  /** Version mismatches, by address. */
  const mismatches = new Map<string, string>()
  let context = options.tls && contextOf(options.tls)
  const closing = new AbortController()

  const connect = (address: string, is_retry: boolean) => {
    const reportMismatch = (detail: string | undefined) => {
      if (detail === undefined) mismatches.delete(address)
      else mismatches.set(address, detail)
    }
    const versions = versionsOver(address, options.versions ?? link_versions, reportMismatch)
    const link = connectTo(options, versions, context, closing.signal, address)
    const entry: LinkEntry = { link, is_retry, failed_at: undefined }
    known.set(address, entry)
    link.then(
      ({ link: { closed } }) => {
        entry.is_retry = false
        return closed.then(() => {
          if (known.get(address) === entry) known.delete(address)
        })
      },
      () => {
        entry.failed_at = performance.now()
      },
    )
    return entry
  }
  const to = (address: string): Promise<Connection> => {
    if (closing.signal.aborted) return Promise.reject(unavailable("this node is stopping"))
    const entry = known.get(address)
    const has_failed = entry?.failed_at !== undefined
    const is_pausing = has_failed && performance.now() - (entry?.failed_at ?? 0) < pause_ms
    const { link, is_retry } =
      entry === undefined || (has_failed && !is_pausing) ? connect(address, has_failed) : entry
    return is_retry ? linkWithin(link, address) : link
  }
  return {
    /** The link to the node at this address. Rejects if there is none. */
    to,
    call: async (
      address: string,
      operation: number,
      json: unknown,
      body: Body | undefined,
      deadline_ms: number,
    ): Promise<ReceivedResponse> => (await to(address)).call(operation, json, body, deadline_ms),
    /** The version mismatch with the node at this address, if any. */
    mismatchWith: (address: string) => mismatches.get(address),
    /** Uses these TLS settings for new connections. Throws if they are invalid. */
    setTls: (tls: NonNullable<PeerCallOptions["tls"]>) => {
      context = contextOf(tls)
    },
    /** Closes all links and pending attempts. */
    close: async () => {
      closing.abort()
      const links = await Promise.allSettled([...known.values()].map(({ link }) => link))
      known.clear()
      for (const result of links) if (result.status === "fulfilled") result.value.link.close()
    },
  }
}

export type PeerCalls = ReturnType<typeof peerCalls>
