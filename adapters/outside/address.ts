/**
 * Where a tenant's addresses may lead, of webhooks and of buckets: nowhere that is this machine's
 * own or its neighbours', by whatever name. So nobody can make it ask what only it can reach.
 *
 * Source: RFC 6890 and IANA's special-purpose registries; issue 10 §3; decision 0146.
 */
import { type LookupAddress, lookup } from "node:dns"
import type { Agent } from "node:http"
import { isIP, type LookupFunction } from "node:net"
import { Duplex } from "node:stream"
import { blockList, embeddedV4 } from "#http"

/** Not reachable from everywhere: this host, private, link-local (metadata), shared, reserved. */
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
  // Azure's own, which each machine there reaches and nobody else.
  "168.63.129.16/32",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
]

/** Of IPv6 only what is global unicast is allowed, and of that not what leads elsewhere. */
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

/** Whether this address may be connected to; of what is no address, never. */
export type AddressRule = (address: string) => boolean

/** Decides of addresses; `networks` are CIDRs that are allowed all the same. */
export const addressRule = (networks: ReadonlyArray<string>): AddressRule => {
  const excepted = blockList(networks)
  const isAllowed: AddressRule = (address) => {
    const plain = address.split("%", 1)[0] ?? ""
    if (isIP(plain) === 4) return excepted.check(plain, "ipv4") || !refused_v4.check(plain, "ipv4")
    if (isIP(plain) !== 6) return false
    const inner = embeddedV4(plain)
    if (inner !== undefined) return isAllowed(inner)
    if (excepted.check(plain, "ipv6")) return true
    return allowed_v6.check(plain, "ipv6") && !refused_v6.check(plain, "ipv6")
  }
  return isAllowed
}

/** The code of the error with which a refused connection ends. */
export const refused_address = "ERR_ADDRESS_REFUSED"

/** Nothing at this host may be connected to. */
export const refusedAddress = (host: string) =>
  Object.assign(new Error(`${host} has no address that may be reached`), { code: refused_address })

/** Whether this host is an address, as URLs write it, and one that may not be connected to. */
export const isRefusedHost = (isAllowed: AddressRule, host: string) => {
  const address = host.replace(/^\[|\]$/g, "")
  return isIP(address) !== 0 && !isAllowed(address)
}

/** How a name is looked up; the system's own way, unless a test has another. */
export type Resolve = (
  host: string,
  answer: (error: Error | null, found: ReadonlyArray<LookupAddress>) => void,
) => void

const systemResolve: Resolve = (host, answer) =>
  lookup(host, { all: true }, (error, found) => answer(error, found ?? []))

/**
 * A lookup for connections: what it answers is what is connected to, so that a name cannot mean
 * one address when it is judged and another one then.
 */
export const guardedLookup =
  (isAllowed: AddressRule, resolve = systemResolve): LookupFunction =>
  (host, options, callback) => {
    resolve(host, (error, found) => {
      const good = found.filter(({ address }) => isAllowed(address))
      const [first] = good
      if (error !== null) return callback(error, [])
      if (first === undefined) return callback(refusedAddress(host), [])
      if (options.all === true) callback(null, [...good])
      else callback(null, first.address, first.family)
    })
  }

/** The same agent, which connects to nothing else; where it connects to is judged as it does. */
export const guardedAgent = <A extends Agent>(agent: A, isAllowed: AddressRule): A => {
  const connect = agent.createConnection.bind(agent)
  const lookup = guardedLookup(isAllowed)
  agent.createConnection = (options, callback) => {
    const host = options.host ?? ""
    // An address is not looked up.
    if (!isRefusedHost(isAllowed, host)) return connect({ ...options, lookup }, callback)
    callback?.(refusedAddress(host), new Duplex())
    return undefined
  }
  return agent
}

/** Finds what a name means now; fails where none of it may be reached, or it means nothing. */
export const judgedName = (isAllowed: AddressRule, host: string, resolve?: Resolve) =>
  new Promise<void>((settle, reject) => {
    if (isRefusedHost(isAllowed, host)) return reject(refusedAddress(host))
    guardedLookup(isAllowed, resolve)(host.replace(/^\[|\]$/g, ""), { all: true }, (error) =>
      error === null ? settle() : reject(error),
    )
  })
