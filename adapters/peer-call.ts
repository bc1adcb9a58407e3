/**
 * The way to another node: one connection to each, made when it is first asked for and kept. A node
 * that could not be reached is not tried again at once, so that each request fails fast.
 *
 * Source: document 1 §1 InternalService; DECISIONS, document 1, InternalService.
 */
import { Agent, type IncomingMessage, request } from "node:http"
import { request as requestTls, Agent as TlsAgent } from "node:https"
import type { Duplex } from "node:stream"
import { isPeerFailure, peerFailure } from "#actors/blob-storage/peer-failure.ts"
import { link_path, link_protocol, readChallenge, writeProof } from "./peer-door.ts"
import { askingLink, type Body, type PeerLink, type Said } from "./peer-link.ts"
import { isProof, newNonce, proofOf } from "./peer-proof.ts"

/** How long a connection may take to be made and proven, in milliseconds. */
const connect_ms_max = 3000

/** After a failure a node is left alone for so long, in milliseconds. */
const pause_ms = 500

export interface PeerCallOptions {
  readonly cluster: string
  readonly secret: string
  /** This node. */
  readonly node_id: string
  /** TLS to the others, with the authority that has signed them; plain TCP where undefined. */
  readonly tls?: { readonly ca: Buffer }
}

const unavailable = (detail: string) => peerFailure("UNAVAILABLE", detail)

/** Asks twice on one connection: for the nonce, and then with the proof. */
const connectTo = ({ cluster, secret, node_id, tls }: PeerCallOptions, address: string) => {
  const agent =
    tls === undefined
      ? new Agent({ keepAlive: true, maxSockets: 1 })
      : new TlsAgent({ keepAlive: true, maxSockets: 1, ca: tls.ca })
  const send = tls === undefined ? request : requestTls
  const url = `${tls === undefined ? "http" : "https"}://${address}${link_path}`
  const signal = AbortSignal.timeout(connect_ms_max)

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
    new Promise<PeerLink>((resolve, reject) => {
      const caller_nonce = newNonce()
      const meeting = { cluster, caller: node_id, caller_nonce, called_nonce }
      const authorization = writeProof(node_id, caller_nonce, proofOf(secret, "caller", meeting))
      const headers = { authorization, connection: "Upgrade", upgrade: link_protocol }
      const asked = send(url, { agent, signal, headers }, (response) => {
        response.resume()
        const detail = `${address} does not know this node: another secret or cluster?`
        reject(peerFailure("UNAUTHENTICATED", detail))
      })
      asked.on("upgrade", (response: IncomingMessage, socket: Duplex, head: Buffer) => {
        const proof = response.headers["x-almanac-proof"]
        if (typeof proof !== "string" || !isProof(secret, "called", meeting, proof)) {
          socket.destroy()
          reject(peerFailure("UNAUTHENTICATED", `${address} could not prove what it is`))
          return
        }
        socket.unshift(head)
        resolve(askingLink(socket))
      })
      asked.on("error", reject).end()
    })
  return challenge()
    .then(upgrade)
    .catch((cause: unknown) => {
      agent.destroy()
      if (isPeerFailure(cause)) throw cause
      const why = cause instanceof Error ? cause.message : String(cause)
      throw unavailable(`${address} cannot be reached: ${why}`)
    })
}

interface Known {
  readonly link: Promise<PeerLink>
  failed_at: number | undefined
}

/** Links to nodes by their address. */
export const peerCalls = (options: PeerCallOptions) => {
  const known = new Map<string, Known>()

  const linkTo = (address: string): Promise<PeerLink> => {
    const found = known.get(address)
    const rests = found?.failed_at !== undefined && performance.now() - found.failed_at < pause_ms
    if (found !== undefined && (found.failed_at === undefined || rests)) return found.link
    const made: Known = { link: connectTo(options, address), failed_at: undefined }
    known.set(address, made)
    made.link.then(
      ({ closed }) =>
        closed.then(() => {
          if (known.get(address) === made) known.delete(address)
        }),
      () => {
        made.failed_at = performance.now()
      },
    )
    return made.link
  }
  return {
    ask: async (
      address: string,
      operation: number,
      json: unknown,
      body: Body | undefined,
      deadline_ms: number,
    ): Promise<Said> => (await linkTo(address)).ask(operation, json, body, deadline_ms),
    close: async () => {
      const links = await Promise.allSettled([...known.values()].map(({ link }) => link))
      known.clear()
      for (const made of links) if (made.status === "fulfilled") made.value.close()
    },
  }
}

export type PeerCalls = ReturnType<typeof peerCalls>
