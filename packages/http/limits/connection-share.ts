/**
 * How many of the connections each address may have: one client that opens many of them keeps no
 * other out, and an operator on this machine always gets in. IPv6 addresses count by their /64.
 *
 * Source: decision 0186.
 */

import { callerNetwork } from "#schemas/caller-network.ts"
import type { ListenerSettings } from "../handler.ts"
import { networksOf } from "./networks.ts"

/** Connections of one address beyond its limit that get an answer; more are closed. */
const told_max = 16

/** Of all connections so many are for unlimited addresses alone, a sixteenth where it is less. */
const reserve_max = 64
const reserve_share = 16

/** Served; answered that there are too many; closed at once. */
export type Admission = "served" | "excess" | "closed"

export interface Shares {
  /** Counts a connection from this address, of which and of all others `open` are open. */
  readonly admit: (address: string, open: number) => Admission
  /** A connection from this address, which was counted, is closed. */
  readonly release: (address: string) => void
}

type ShareSettings = Pick<
  ListenerSettings["api"],
  "max_connections_per_address" | "unlimited_addresses"
>

/** `connections_max` is the maximum of all addresses together. */
export const connectionShares = (
  { max_connections_per_address, unlimited_addresses }: ShareSettings,
  connections_max: number,
): Shares => {
  const isUnlimited = networksOf(unlimited_addresses)
  const reserve = Math.min(reserve_max, Math.floor(connections_max / reserve_share))
  const open_max = connections_max - reserve
  const by_network = new Map<string, number>()

  const count = (address: string, by: number) => {
    const network = callerNetwork(address)
    const now = (by_network.get(network) ?? 0) + by
    if (now > 0) by_network.set(network, now)
    else by_network.delete(network)
    return now
  }
  const worse = (one: number, max: number, spare: number): Admission => {
    if (one <= max) return "served"
    return one <= max + spare ? "excess" : "closed"
  }
  return {
    admit: (address, open) => {
      const own = count(address, 1)
      // What is beyond all is closed by the listener itself.
      if (isUnlimited(address)) return open > connections_max ? "excess" : "served"
      const of_address = worse(own, max_connections_per_address, told_max)
      return of_address === "served" ? worse(open, open_max, reserve / 2) : of_address
    },
    release: (address) => void count(address, -1),
  }
}
