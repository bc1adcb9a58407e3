/**
 * Where other nodes come in: `/internal/v1/link` of the address that users have too.
 *
 * The first request on a connection is refused with a nonce. The second, on the same connection,
 * asks for `Upgrade: almanac-link` with a proof over that nonce and its own, and is answered with
 * one in return; from then on the connection is a link. A proof cannot be said twice, since the
 * nonce is the connection's and is gone with the first that is tried. Or the caller shows, by TLS,
 * a certificate whose common name is that of a node of the cluster. Everybody else gets 401, and no
 * token of a user's changes that. A node whose release speaks no version that this one speaks gets
 * 426.
 *
 * Source: document 1 §5; DECISIONS, document 1, InternalService.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { v7 } from "uuid"
import { type Answering, answeringLink } from "./link.ts"
import { isNonce, isProof, newNonce, proofOf } from "./proof.ts"
import {
  type LinkVersions,
  link_versions,
  readVersions,
  sharedVersion,
  version_header,
  versionsApart,
  writeVersions,
} from "./version.ts"

export const link_path = "/internal/v1/link"
const internal_prefix = "/internal/v1"
export const link_protocol = "almanac-link"
const scheme = "Almanac-Cluster"

export interface PeerDoorOptions {
  /** The cluster's name and its secret; an empty secret lets nobody in. */
  readonly cluster: string
  readonly secret: string
  /** What answers a node's questions in a version of the link. */
  readonly answeringFor: (node_id: string, version: number) => Answering
  /** What is spoken; all that this release can unless given. */
  readonly versions?: LinkVersions
  /** The names in a certificate that TLS has verified, such as `CN=node-1`; none unless given. */
  readonly namesOf?: (socket: Duplex) => ReadonlyArray<string>
  /** Whether the cluster has a node of that name; it has none unless given. */
  readonly isNode?: (node_id: string) => boolean
}

const common_name = "CN="

/** What `Authorization` says after the scheme: names with texts in quotes. */
const readProof = (header: string | undefined) => {
  const given = header?.startsWith(`${scheme} `) ? header.slice(scheme.length + 1) : ""
  const found = /^node="([\w-]{1,64})", nonce="([^"]+)", proof="([^"]+)"$/.exec(given)
  const [, caller, caller_nonce = "", proof] = found ?? []
  if (caller === undefined || proof === undefined || !isNonce(caller_nonce)) return undefined
  return { caller, caller_nonce, proof }
}

export const writeProof = (caller: string, caller_nonce: string, proof: string) =>
  `${scheme} node="${caller}", nonce="${caller_nonce}", proof="${proof}"`

export const readChallenge = (header: string | undefined) => {
  const [, nonce = ""] = /^Almanac-Cluster nonce="([^"]+)"$/.exec(header ?? "") ?? []
  return isNonce(nonce) ? nonce : undefined
}

const unauthenticated = {
  code: "UNAUTHENTICATED",
  message: "unauthenticated",
  detail: "This path is for the nodes of this cluster.",
}

const refusal = (of = unauthenticated) => JSON.stringify({ ...of, request_id: v7() })

/** Ends a connection that is to become no link. */
const refuse = (socket: Duplex, status: string, body: string, more: ReadonlyArray<string> = []) => {
  const type = "Content-Type: application/json"
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  const head = [`HTTP/1.1 ${status}`, "Connection: close", ...more, type, length]
  socket.end([...head, "", body].join("\r\n"))
}

export const peerDoor = (options: PeerDoorOptions) => {
  const { cluster, secret, answeringFor, versions = link_versions } = options
  const { namesOf = () => [], isNode = () => false } = options
  const challenges = new WeakMap<object, string>()
  const links = new Set<Duplex>()

  const challenge = (socket: object) => {
    const nonce = newNonce()
    challenges.set(socket, nonce)
    return nonce
  }
  /** The node whose certificate this is. */
  const certified = (socket: Duplex) => {
    const names = namesOf(socket).filter((name) => name.startsWith(common_name))
    const caller = names.map((name) => name.slice(common_name.length)).find(isNode)
    return caller === undefined ? undefined : { caller, answer: undefined }
  }
  /** The node that proves itself, and our proof in return. */
  const meet = (request: IncomingMessage) => {
    const called_nonce = challenges.get(request.socket)
    challenges.delete(request.socket)
    const said = readProof(request.headers.authorization)
    if (said === undefined || secret === "") return certified(request.socket)
    if (called_nonce === undefined) return undefined
    const { caller, caller_nonce, proof } = said
    const meeting = { cluster, caller, caller_nonce, called_nonce }
    if (!isProof(secret, "caller", meeting, proof)) return undefined
    return { caller, answer: proofOf(secret, "called", meeting) }
  }
  return {
    /** Paths below it are only for nodes. */
    prefix: internal_prefix,
    /** Refuses a request to an internal path, and says over what the next is to be proven. */
    request: ({ socket }: IncomingMessage, response: ServerResponse) => {
      const body = refusal()
      response.writeHead(401, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "www-authenticate": `${scheme} nonce="${challenge(socket)}"`,
      })
      response.end(body)
    },
    /** Makes a connection a link where the node proves itself, and ends it where it does not. */
    upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const is_link = request.headers.upgrade?.toLowerCase() === link_protocol
      const met = is_link && request.url === link_path ? meet(request) : undefined
      if (met === undefined) return refuse(socket, "401 Unauthorized", refusal())
      const spoken = `${version_header}: ${writeVersions(versions)}`
      const theirs = readVersions(request.headers[version_header])
      const version = sharedVersion(versions, theirs)
      if (version === undefined) {
        const detail = versionsApart(met.caller, theirs, versions)
        const message = "no version of the link is common"
        const body = refusal({ code: "FAILED_PRECONDITION", message, detail })
        return refuse(socket, "426 Upgrade Required", body, [`Upgrade: ${link_protocol}`, spoken])
      }
      const lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"]
      const proof = met.answer === undefined ? [] : [`X-Almanac-Proof: ${met.answer}`]
      socket.write([...lines, `Upgrade: ${link_protocol}`, spoken, ...proof, "", ""].join("\r\n"))
      socket.unshift(head)
      links.add(socket)
      void answeringLink(socket, answeringFor(met.caller, version)).then(() => links.delete(socket))
    },
    /** Links that are open now. */
    count: () => links.size,
    close: () => {
      for (const socket of links) socket.destroy()
    },
  }
}
