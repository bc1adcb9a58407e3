/**
 * Limits the connections of each address, so that one client cannot lock others out, and an
 * operator on this machine can always connect. IPv6 addresses count by their /64.
 *
 * Source: decision 0186.
 */

import { callerNetwork } from "#schemas/caller-network.ts"
import type { ListenerSettings } from "../handler.ts"
import { networksOf } from "./networks.ts"

/** Connections of one address beyond its limit that get a response; further ones are closed. */
const excess_max = 16

/**
 * Connections reserved for unlimited addresses: this number, or this share of all if that is less.
 */
const reserve_max = 64
const reserve_share = 16

/** "excess": gets 503. "closed": is closed immediately. */
export type Admission = "served" | "excess" | "closed"

export interface Shares {
  /** Counts a new connection. `open` is the number of all connections, including this one. */
  readonly admit: (address: string, open: number) => Admission
  /** Uncounts a closed connection. */
  readonly release: (address: string) => void
}

type ShareSettings = Pick<
  ListenerSettings["api"],
  "max_connections_per_address" | "unlimited_addresses"
>

/** `connections_max` is the limit of all addresses together. */
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
  const admissionOf = (one: number, max: number, spare: number): Admission => {
    if (one <= max) return "served"
    return one <= max + spare ? "excess" : "closed"
  }
  return {
    admit: (address, open) => {
      const own = count(address, 1)
      // The server itself closes connections beyond `connections_max` and the spare ones.
      if (isUnlimited(address)) return open > connections_max ? "excess" : "served"
      const of_address = admissionOf(own, max_connections_per_address, excess_max)
      return of_address === "served" ? admissionOf(open, open_max, reserve / 2) : of_address
    },
    release: (address) => void count(address, -1),
  }
}
