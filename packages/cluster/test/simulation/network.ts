/**
 * The network of a simulated cluster: implements Peers with connections that are slow, hang, break
 * in the middle of a body, or stay silent, as determined by the seed or a test.
 */

import type { Peers } from "#actors/blob-storage/ports/peers.ts"
import { peerFailure } from "../../peer-failure.ts"
import type { Host, Link, Wires } from "./links.ts"
import { makeCalls } from "./network-calls.ts"
import type { World } from "./world.ts"

/** Probabilities of network faults, from 0 to 1 per message. */
export interface NetworkFaults {
  /** Maximum duration of a message, in milliseconds. */
  readonly delay_ms_max: number
  /** The message takes a hundred times as long. */
  readonly slow: number
  /** The connection breaks at this message, and both sides notice. */
  readonly cut: number
  /** The message is lost silently: the caller waits until its deadline. */
  readonly lost: number
}

export const good_network: NetworkFaults = { delay_ms_max: 2, slow: 0, cut: 0, lost: 0 }

const slower = 100

/** Time until each side of a connection notices that the link is cut, in milliseconds. */
const silence_ms = 8000

/** The chance that a process's death closes its connections at once, as a running kernel does. */
const immediate_close = 0.8

export interface Network {
  /** Registers a node that has started, in place of its earlier life. */
  readonly attach: (host: Host) => void
  /** A node has died: all its connections end sooner or later. */
  readonly drop: (node_id: string) => void
  /** Blocks messages from one node to the other, in this direction only. */
  readonly block: (from: string, to: string) => void
  readonly unblock: (from: string, to: string) => void
  /** Unblocks all links. */
  readonly heal: () => void
  readonly isBlocked: (from: string, to: string) => boolean
  readonly setFaults: (faults: NetworkFaults) => void
  /** The other nodes, as callable by this life of a node. */
  readonly peersOf: (host: Pick<Host, "node_id" | "isUp">) => Peers
}

const pairOf = (from: string, to: string) => `${from}>${to}`

export const makeNetwork = (world: World): Network => {
  const hosts = new Map<string, Host>()
  const blocked = new Set<string>()
  let faults = good_network

  const send: Wires["send"] = (from, to, arrived) => {
    const { delay_ms_max, slow, cut, lost } = faults
    const fast_ms = world.random.next() * delay_ms_max
    const delay_ms = world.happens("a message is slow", slow) ? fast_ms * slower : fast_ms
    if (world.happens("a message is lost", lost)) {
      world.after(silence_ms, () => arrived("lost"))
    } else if (world.happens("a connection is cut", cut)) {
      world.after(delay_ms, () => arrived("cut"))
    } else {
      world.after(delay_ms, () => {
        if (!blocked.has(pairOf(from, to))) arrived("arrived")
        else world.after(silence_ms, () => arrived("lost"))
      })
    }
  }
  const links = new Set<Link>()
  const wires: Wires = { hostOf: (node_id) => hosts.get(node_id), send, links }
  return {
    attach: (host) => void hosts.set(host.node_id, host),
    drop: (node_id) => {
      const down = peerFailure("UNAVAILABLE", `${node_id} is down`)
      for (const link of links) {
        if (!link.ends.includes(node_id)) continue
        const close_ms = world.random.next() < immediate_close ? 1 : silence_ms
        world.after(close_ms, () => link.fail(down))
      }
    },
    block: (from, to) => void blocked.add(pairOf(from, to)),
    unblock: (from, to) => void blocked.delete(pairOf(from, to)),
    heal: () => blocked.clear(),
    isBlocked: (from, to) => blocked.has(pairOf(from, to)),
    setFaults: (next) => {
      faults = next
    },
    peersOf: (caller) => makeCalls(world, wires, caller),
  }
}
