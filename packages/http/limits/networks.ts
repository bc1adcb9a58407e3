/** Networks of IP addresses, as CIDRs. */
import { BlockList, isIP } from "node:net"

/** Builds a list of CIDRs for address lookups. */
export const blockList = (networks: ReadonlyArray<string>) => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = "", bits = ""] = network.split("/")
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4")
  }
  return list
}

/** The IPv4 address embedded in an IPv6 address (RFC 4291 §2.5.5.2, RFC 6052). */
export const embeddedV4 = (address: string) => {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] =
    /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical) ?? []
  if (high === undefined || low === undefined) return undefined
  const number = (part: string) => Number.parseInt(part, 16)
  const [a, b] = [number(high), number(low)]
  return `${a >> 8}.${a & 255}.${b >> 8}.${b & 255}`
}

/** Returns whether an address is in one of these CIDRs; false for an invalid address. */
export const networksOf = (networks: ReadonlyArray<string>): ((address: string) => boolean) => {
  const list = blockList(networks)
  return (address) => {
    const plain = address.split("%", 1)[0] ?? ""
    if (isIP(plain) === 4) return list.check(plain, "ipv4")
    if (isIP(plain) !== 6) return false
    const v4 = embeddedV4(plain)
    return v4 === undefined ? list.check(plain, "ipv6") : list.check(v4, "ipv4")
  }
}
