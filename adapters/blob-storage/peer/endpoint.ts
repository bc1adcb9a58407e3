/**
 * Accepts connections from other nodes at `/internal/v1/link`, on the same address as the public
 * API.
 *
 * The first request on a connection gets 401 with a nonce. The second, on the same connection,
 * requests `Upgrade: almanac-link` with a proof over that nonce and its own, and gets a proof in
 * return; then the connection is a link. A proof cannot be replayed, because the nonce belongs to
 * the connection and is dropped after the first attempt. Alternatively the caller presents a TLS
 * certificate whose common name is that of a cluster node. All other callers get 401, even with
 * a valid token. A node without a common protocol version gets 426.
 *
 * Source: document 1 §5; DECISIONS, document 1, InternalService.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { v7 } from "uuid"
import { type Handler, serverLink } from "./link.ts"
import { isNonce, isProof, newNonce, proofOf } from "./proof.ts"
import {
  type LinkVersions,
  link_versions,
  readVersions,
  sharedVersion,
  version_header,
  versionMismatch,
  writeVersions,
} from "./version.ts"

export const link_path = "/internal/v1/link"
const internal_prefix = "/internal/v1"
export const link_protocol = "almanac-link"
const scheme = "Almanac-Cluster"

export interface PeerEndpointOptions {
  /** The cluster's name and secret; with an empty secret, no proof is accepted. */
  readonly cluster: string
  readonly secret: string
  /** Creates the request handler for a node and a protocol version. */
  readonly handlerFor: (node_id: string, version: number) => Handler
  /** Supported protocol versions; default: all of this release. */
  readonly versions?: LinkVersions
  /** The names in a certificate that TLS has verified, such as `CN=node-1`; default: none. */
  readonly namesOf?: (socket: Duplex) => ReadonlyArray<string>
  /** Whether the cluster has a node of that name; default: false. */
  readonly isNode?: (node_id: string) => boolean
}

const common_name = "CN="

/** Parses the parameters of `Authorization`: names with quoted values. */
const readProof = (header: string | undefined) => {
  const text = header?.startsWith(`${scheme} `) ? header.slice(scheme.length + 1) : ""
  const match = /^node="([\w-]{1,64})", nonce="([^"]+)", proof="([^"]+)"$/.exec(text)
  const [, caller, caller_nonce = "", proof] = match ?? []
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
  detail: "This path is only for nodes of this cluster.",
}

const refusal = (of = unauthenticated) => JSON.stringify({ ...of, request_id: v7() })

/** Rejects an upgrade and closes the connection. */
const refuse = (socket: Duplex, status: string, body: string, more: ReadonlyArray<string> = []) => {
  const type = "Content-Type: application/json"
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  const head = [`HTTP/1.1 ${status}`, "Connection: close", ...more, type, length]
  socket.end([...head, "", body].join("\r\n"))
}

/** Upgrades a connection; `proof` is absent if a certificate authenticated the node. */
const accept = (socket: Duplex, version_line: string, proof: string | undefined) => {
  const lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"]
  const proof_lines = proof === undefined ? [] : [`X-Almanac-Proof: ${proof}`]
  socket.write(
    [...lines, `Upgrade: ${link_protocol}`, version_line, ...proof_lines, "", ""].join("\r\n"),
  )
}

export const peerEndpoint = (options: PeerEndpointOptions) => {
  const { cluster, secret, handlerFor, versions = link_versions } = options
  const { namesOf = () => [], isNode = () => false } = options
  const challenges = new WeakMap<object, string>()
  const links = new Set<Duplex>()

  const challenge = (socket: object) => {
    const nonce = newNonce()
    challenges.set(socket, nonce)
    return nonce
  }
  /** The node authenticated by its certificate. */
  const callerByCertificate = (socket: Duplex) => {
    const names = namesOf(socket).filter((name) => name.startsWith(common_name))
    const caller = names.map((name) => name.slice(common_name.length)).find(isNode)
    return caller === undefined ? undefined : { caller, proof: undefined }
  }
  /** Authenticates the caller; returns its name and this node's proof. */
  const authenticate = (request: IncomingMessage) => {
    const called_nonce = challenges.get(request.socket)
    challenges.delete(request.socket)
    const credentials = readProof(request.headers.authorization)
    if (credentials === undefined || secret === "") return callerByCertificate(request.socket)
    if (called_nonce === undefined) return undefined
    const { caller, caller_nonce, proof } = credentials
    const handshake = { cluster, caller, caller_nonce, called_nonce }
    if (!isProof(secret, "caller", handshake, proof)) return undefined
    return { caller, proof: proofOf(secret, "called", handshake) }
  }
  return {
    /** Paths below it are only for nodes. */
    prefix: internal_prefix,
    /** Rejects a request to an internal path, with a nonce for the next one. */
    request: ({ socket }: IncomingMessage, response: ServerResponse) => {
      const body = refusal()
      response.writeHead(401, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "www-authenticate": `${scheme} nonce="${challenge(socket)}"`,
      })
      response.end(body)
    },
    /** Upgrades the connection of an authenticated node to a link; rejects all others. */
    upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const is_link = request.headers.upgrade?.toLowerCase() === link_protocol
      const authenticated = is_link && request.url === link_path ? authenticate(request) : undefined
      if (authenticated === undefined) return refuse(socket, "401 Unauthorized", refusal())
      const version_line = `${version_header}: ${writeVersions(versions)}`
      const theirs = readVersions(request.headers[version_header])
      const version = sharedVersion(versions, theirs)
      if (version === undefined) {
        const detail = versionMismatch(authenticated.caller, theirs, versions)
        const message = "no common protocol version"
        const body = refusal({ code: "FAILED_PRECONDITION", message, detail })
        return refuse(socket, "426 Upgrade Required", body, [
          `Upgrade: ${link_protocol}`,
          version_line,
        ])
      }
      accept(socket, version_line, authenticated.proof)
      socket.unshift(head)
      links.add(socket)
      void serverLink(socket, handlerFor(authenticated.caller, version)).then(() =>
        links.delete(socket),
      )
    },
    /** The number of open links. */
    count: () => links.size,
    close: () => {
      for (const socket of links) socket.destroy()
    },
  }
}
