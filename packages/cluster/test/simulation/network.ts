/**
 * A network between the nodes of a simulated cluster: Peers over connections that are slow, hang,
 * are cut in the middle of a body, and stay silent, when the seed says so or the test does.
 */

import type { Peers } from "#actors/blob-storage/ports/peers.ts"
import { peerFailure } from "../../peer-failure.ts"
import { makeCalls } from "./network-calls.ts"
import type { Cable, Host, Wires } from "./wires.ts"
import type { World } from "./world.ts"

/** How bad the network is; each is a chance from 0 to 1, for one message. */
export interface Weather {
  /** A message takes up to so many milliseconds. */
  readonly delay_ms_max: number
  /** It takes a hundred times as long. */
  readonly slow: number
  /** The connection breaks at this message, and both sides hear of it. */
  readonly cut: number
  /** The message is lost and nobody hears of it: whoever waits waits until its deadline. */
  readonly lost: number
}

export const fair: Weather = { delay_ms_max: 2, slow: 0, cut: 0, lost: 0 }

const slower = 100

/** After so long each side of a connection finds out that nothing comes through, in ms. */
const silence_ms = 8000

/** How often the death of a process ends its connections at once, as a kernel that lives does. */
const heard_at_once = 0.8

export interface Network {
  /** A node begins to answer: what it was before is gone. */
  readonly attach: (host: Host) => void
  /** A node has died: sooner or later all its connections end. */
  readonly drop: (node_id: string) => void
  /** Nothing gets from one to the other; the way back is another. */
  readonly block: (from: string, to: string) => void
  readonly unblock: (from: string, to: string) => void
  /** All ways are open. */
  readonly heal: () => void
  readonly isBlocked: (from: string, to: string) => boolean
  readonly setWeather: (weather: Weather) => void
  /** The others, as this life of a node can ask them. */
  readonly peersOf: (host: Pick<Host, "node_id" | "isUp">) => Peers
}

const pairOf = (from: string, to: string) => `${from}>${to}`

export const makeNetwork = (world: World): Network => {
  const hosts = new Map<string, Host>()
  const blocked = new Set<string>()
  let weather = fair

  const carry: Wires["carry"] = (from, to, arrived) => {
    const { delay_ms_max, slow, cut, lost } = weather
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
  const cables = new Set<Cable>()
  const wires: Wires = { hostOf: (node_id) => hosts.get(node_id), carry, cables }
  return {
    attach: (host) => void hosts.set(host.node_id, host),
    drop: (node_id) => {
      const down = peerFailure("UNAVAILABLE", `${node_id} is down`)
      for (const cable of cables) {
        if (!cable.ends.includes(node_id)) continue
        const heard_ms = world.random.next() < heard_at_once ? 1 : silence_ms
        world.after(heard_ms, () => cable.fail(down))
      }
    },
    block: (from, to) => void blocked.add(pairOf(from, to)),
    unblock: (from, to) => void blocked.delete(pairOf(from, to)),
    heal: () => blocked.clear(),
    isBlocked: (from, to) => blocked.has(pairOf(from, to)),
    setWeather: (next) => {
      weather = next
    },
    peersOf: (caller) => makeCalls(world, wires, caller),
  }
}
