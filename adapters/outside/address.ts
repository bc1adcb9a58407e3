/**
 * SSRF protection for tenants' addresses (webhooks and buckets): connections to this machine or its
 * private networks are rejected, regardless of the host name.
 *
 * Source: RFC 6890 and IANA's special-purpose registries; issue 10 §3; decision 0146.
 */
import { type LookupAddress, lookup } from "node:dns"
import type { Agent } from "node:http"
import { isIP, type LookupFunction } from "node:net"
import { Duplex } from "node:stream"
import { blockList, embeddedV4 } from "#http"

/** Not globally reachable: this host, private, link-local (metadata), shared, reserved. */
const special_v4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  // Azure's platform address, reachable only from its virtual machines.
  "168.63.129.16/32",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
]

/** For IPv6 only global unicast is allowed, except the special ranges below. */
const global_v6 = "2000::/3"
const special_v6 = [
  // Teredo and 6to4 carry an IPv4 address; the others are for examples, benchmarks and overlays.
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "3fff::/20",
]

const refused_v4 = blockList(special_v4)
const refused_v6 = blockList(special_v6)
const allowed_v6 = blockList([global_v6])

/** Whether connections to this address are allowed; false if it is not an address. */
export type AddressRule = (address: string) => boolean

/** Makes a rule; `networks` are CIDRs that are allowed in addition. */
export const addressRule = (networks: ReadonlyArray<string>): AddressRule => {
  const exceptions = blockList(networks)
  const isAllowed: AddressRule = (address) => {
    const plain = address.split("%", 1)[0] ?? ""
    if (isIP(plain) === 4)
      return exceptions.check(plain, "ipv4") || !refused_v4.check(plain, "ipv4")
    if (isIP(plain) !== 6) return false
    const inner = embeddedV4(plain)
    if (inner !== undefined) return isAllowed(inner)
    if (exceptions.check(plain, "ipv6")) return true
    return allowed_v6.check(plain, "ipv6") && !refused_v6.check(plain, "ipv6")
  }
  return isAllowed
}

/** Error code of a refused connection. */
export const refused_address = "ERR_ADDRESS_REFUSED"

/** Error of a refused host. */
export const refusedAddress = (host: string) =>
  Object.assign(new Error(`${host} has no permitted address`), { code: refused_address })

/** Whether this host is an address literal, as in URLs, that is refused. */
export const isRefusedHost = (isAllowed: AddressRule, host: string) => {
  const address = host.replace(/^\[|\]$/g, "")
  return isIP(address) !== 0 && !isAllowed(address)
}

/** Name resolution: the system's, except in tests. */
export type Resolve = (
  host: string,
  callback: (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void,
) => void

const systemResolve: Resolve = (host, callback) =>
  lookup(host, { all: true }, (error, addresses) => callback(error, addresses ?? []))

/**
 * A lookup for connections. The checked address is the one that is connected to, which prevents DNS
 * rebinding.
 */
export const guardedLookup =
  (isAllowed: AddressRule, resolve = systemResolve): LookupFunction =>
  (host, options, callback) => {
    resolve(host, (error, addresses) => {
      const allowed = addresses.filter(({ address }) => isAllowed(address))
      const [first] = allowed
      if (error !== null) return callback(error, [])
      if (first === undefined) return callback(refusedAddress(host), [])
      if (options.all === true) callback(null, [...allowed])
      else callback(null, first.address, first.family)
    })
  }

/** Restricts an agent to allowed addresses, checked on connect. */
export const guardedAgent = <A extends Agent>(agent: A, isAllowed: AddressRule): A => {
  const connect = agent.createConnection.bind(agent)
  const lookup = guardedLookup(isAllowed)
  agent.createConnection = (options, callback) => {
    const host = options.host ?? ""
    // Address literals are not looked up.
    if (!isRefusedHost(isAllowed, host)) return connect({ ...options, lookup }, callback)
    callback?.(refusedAddress(host), new Duplex())
    return undefined
  }
  return agent
}

/** Resolves a name; fails if no address is found or allowed. */
export const checkHost = (isAllowed: AddressRule, host: string, resolve?: Resolve) =>
  new Promise<void>((settle, reject) => {
    if (isRefusedHost(isAllowed, host)) return reject(refusedAddress(host))
    guardedLookup(isAllowed, resolve)(host.replace(/^\[|\]$/g, ""), { all: true }, (error) =>
      error === null ? settle() : reject(error),
    )
  })
