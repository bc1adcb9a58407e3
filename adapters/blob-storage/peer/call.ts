/**
 * The way to another node: one connection to each, made when it is first asked for and kept. A node
 * that could not be reached is not tried again at once, so that each request fails fast.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService.
 */
import { Agent, type IncomingMessage, request } from "node:http"
import { request as requestTls, Agent as TlsAgent } from "node:https"
import type { Duplex } from "node:stream"
import { createSecureContext, type SecureContext } from "node:tls"
import { isPeerFailure, peerFailure } from "#cluster"
import { causeText } from "#schemas/cause-text.ts"
import { link_path, link_protocol, readChallenge, writeProof } from "./door.ts"
import { type Asked, askingLink, type Body, type PeerLink } from "./link.ts"
import { isProof, newNonce, proofOf } from "./proof.ts"
import {
  type LinkVersions,
  link_versions,
  readVersions,
  sharedVersion,
  version_header,
  versionsApart,
  writeVersions,
} from "./version.ts"

/** How long a connection may take to be made and proven, in milliseconds. */
const connect_ms_max = 3000

/** After a failure a node is left alone for so long, in milliseconds. */
const pause_ms = 500

/**
 * How long anybody waits for a node that could not be reached before, in milliseconds: one that is
 * there again answers sooner, and what has lost its power lets each try run out.
 */
const again_ms_max = 200

export interface PeerCallOptions {
  readonly cluster: string
  readonly secret: string
  /** This node. */
  readonly node_id: string
  /**
   * TLS to the others, plain TCP where undefined: who may have signed them, and what this node
   * shows of itself. Without a secret the certificate is what proves this node.
   */
  readonly tls?: {
    readonly ca: ReadonlyArray<Buffer | string>
    readonly cert?: Buffer
    readonly key?: Buffer
  }
  /** What is spoken; all that this release can unless given. */
  readonly versions?: LinkVersions
}

/** A connection that is proven, and which version of the link both its ends speak. */
export interface Spoken {
  readonly version: number
  readonly ask: PeerLink["ask"]
}

interface Link extends Spoken {
  readonly link: PeerLink
}

const unavailable = (detail: string) => peerFailure("UNAVAILABLE", detail)

/** The status of a node that speaks no version that this one says. */
const upgrade_required = 426
/** The status with which a connection becomes a link. */
const switching = 101

const keeping = { keepAlive: true, maxSockets: 1 }

/** What all connections of this node have in common, which takes milliseconds to make. */
const contextOf = (tls: NonNullable<PeerCallOptions["tls"]>) =>
  // The list is Node's to read only.
  createSecureContext({ ...tls, ca: [...tls.ca] })

/** Which version of the link both ends speak; the difference is told where there is none. */
const versionsOver = (
  address: string,
  ours: LinkVersions,
  tellApart: (detail: string | undefined) => void,
) => {
  const versionWith = ({ headers }: IncomingMessage) => {
    const theirs = readVersions(headers[version_header])
    const version = sharedVersion(ours, theirs)
    tellApart(version === undefined ? versionsApart(address, theirs, ours) : undefined)
    return version
  }
  return {
    /** Why a node makes no link of a connection, or this one does not. */
    refused: (response: IncomingMessage) => {
      if (response.statusCode !== upgrade_required && response.statusCode !== switching) {
        const detail = `${address} does not know this node: another secret or cluster?`
        return peerFailure("UNAUTHENTICATED", detail)
      }
      versionWith(response)
      return unavailable(`${address} is of a release that speaks another link`)
    },
    /** What a connection has become; undefined, and its end, where no version is common. */
    linked: (response: IncomingMessage, socket: Duplex): Link | undefined => {
      const version = versionWith(response)
      if (version === undefined) {
        socket.destroy()
        return undefined
      }
      const link = askingLink(socket)
      return { version, ask: link.ask, link }
    },
  }
}
type Versions = ReturnType<typeof versionsOver>

/**
 * Asks twice on one connection: for the nonce, and then with the proof. A node without a secret
 * asks once, and its certificate is the proof.
 */
const connectTo = (
  { cluster, secret, node_id, tls, versions = link_versions }: PeerCallOptions,
  { refused, linked }: Versions,
  secureContext: SecureContext | undefined,
  closing: AbortSignal,
  address: string,
) => {
  const agent = secureContext ? new TlsAgent({ ...keeping, secureContext }) : new Agent(keeping)
  const send = secureContext ? requestTls : request
  const url = `${secureContext ? "https" : "http"}://${address}${link_path}`
  const signal = AbortSignal.any([closing, AbortSignal.timeout(connect_ms_max)])
  const is_certified = secret === "" && tls?.cert !== undefined

  const challenge = () =>
    new Promise<string>((resolve, reject) => {
      const asked = send(url, { agent, signal }, (response) => {
        response.resume().on("end", () => {
          const nonce = readChallenge(response.headers["www-authenticate"])
          if (nonce !== undefined) resolve(nonce)
          else reject(unavailable(`${address} is no node of this kind: ${response.statusCode}`))
        })
      })
      asked.on("error", reject).end()
    })
  const upgrade = (called_nonce: string) =>
    new Promise<Link>((resolve, reject) => {
      const caller_nonce = newNonce()
      const meeting = { cluster, caller: node_id, caller_nonce, called_nonce }
      const proof = proofOf(secret, "caller", meeting)
      const headers = {
        ...(!is_certified && { authorization: writeProof(node_id, caller_nonce, proof) }),
        connection: "Upgrade",
        upgrade: link_protocol,
        [version_header]: writeVersions(versions),
      }
      const asked = send(url, { agent, signal, headers }, (response) => {
        response.resume()
        reject(refused(response))
      })
      asked.on("upgrade", (response: IncomingMessage, socket: Duplex, head: Buffer) => {
        const answer = response.headers["x-almanac-proof"]
        const is_proven = typeof answer === "string" && isProof(secret, "called", meeting, answer)
        // TLS has proven whom it reached where there is no secret.
        if (!is_proven && !is_certified) {
          socket.destroy()
          reject(peerFailure("UNAUTHENTICATED", `${address} could not prove what it is`))
          return
        }
        socket.unshift(head)
        const link = linked(response, socket)
        if (link === undefined) reject(refused(response))
        else resolve(link)
      })
      asked.on("error", reject).end()
    })
  return (is_certified ? upgrade("") : challenge().then(upgrade)).catch((cause: unknown) => {
    agent.destroy()
    if (isPeerFailure(cause)) throw cause
    const why = causeText(cause)
    throw unavailable(`${address} cannot be reached: ${why}`)
  })
}

interface Known {
  readonly link: Promise<Link>
  /** Whether the try before this one failed, and this one has not gone well yet. */
  is_again: boolean
  failed_at: number | undefined
}

/** The link, or a failure where it is not there soon: it may come all the same, for others. */
const soon = async (link: Promise<Link>, address: string) => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    const failure = unavailable(`${address} could not be reached before, and is not there yet`)
    timer = setTimeout(() => reject(failure), again_ms_max)
  })
  try {
    return await Promise.race([link, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Links to nodes by their address. */
export const peerCalls = (options: PeerCallOptions) => {
  const known = new Map<string, Known>()
  /** Why a node speaks no version that this one speaks, by its address. */
  const apart = new Map<string, string>()
  let context = options.tls && contextOf(options.tls)
  const closing = new AbortController()

  const connect = (address: string, is_again: boolean) => {
    const tellApart = (detail: string | undefined) => {
      if (detail === undefined) apart.delete(address)
      else apart.set(address, detail)
    }
    const versions = versionsOver(address, options.versions ?? link_versions, tellApart)
    const link = connectTo(options, versions, context, closing.signal, address)
    const made: Known = { link, is_again, failed_at: undefined }
    known.set(address, made)
    link.then(
      ({ link: { closed } }) => {
        made.is_again = false
        return closed.then(() => {
          if (known.get(address) === made) known.delete(address)
        })
      },
      () => {
        made.failed_at = performance.now()
      },
    )
    return made
  }
  const to = (address: string): Promise<Spoken> => {
    if (closing.signal.aborted) return Promise.reject(unavailable("this node is stopping"))
    const found = known.get(address)
    const has_failed = found?.failed_at !== undefined
    const rests = has_failed && performance.now() - (found?.failed_at ?? 0) < pause_ms
    const { link, is_again } =
      found === undefined || (has_failed && !rests) ? connect(address, has_failed) : found
    return is_again ? soon(link, address) : link
  }
  return {
    /** The link to the node there. Rejects as `ask`, where there is none. */
    to,
    ask: async (
      address: string,
      operation: number,
      json: unknown,
      body: Body | undefined,
      deadline_ms: number,
    ): Promise<Asked> => (await to(address)).ask(operation, json, body, deadline_ms),
    /** Why no version of the link is common with the node there; undefined where one is. */
    apartFrom: (address: string) => apart.get(address),
    /** Trusts and shows these from the next connection on. Throws where they do not fit. */
    exchange: (tls: NonNullable<PeerCallOptions["tls"]>) => {
      context = contextOf(tls)
    },
    /** Ends all links, and what is on its way to become one. */
    close: async () => {
      closing.abort()
      const links = await Promise.allSettled([...known.values()].map(({ link }) => link))
      known.clear()
      for (const made of links) if (made.status === "fulfilled") made.value.link.close()
    },
  }
}

export type PeerCalls = ReturnType<typeof peerCalls>
