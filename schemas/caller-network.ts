/** The network of an anonymous caller, for rate limits. Source: RFC 4291 §2.5. */

/** An IPv4-mapped IPv6 address, as dual-stack sockets report it. */
const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** 16-bit groups of a subnet prefix: one customer owns every address in it. */
const prefix_groups = 4
const groups = 8

const fullGroups = (address: string): ReadonlyArray<string> => {
  const [before = "", after] = address.split("::")
  const head = before === "" ? [] : before.split(":")
  if (after === undefined) return head
  const tail = after === "" ? [] : after.split(":")
  const zeros = Array.from({ length: Math.max(0, groups - head.length - tail.length) }, () => "0")
  return [...head, ...zeros, ...tail]
}

/** An IPv4 address unchanged, an IPv6 address as its /64; empty if the address is. */
export const callerNetwork = (address: string): string => {
  if (!address.includes(":")) return address
  const v4 = mapped.exec(address)?.[1]
  if (v4 !== undefined) return v4
  const [bare = ""] = address.split("%", 1)
  const prefix = fullGroups(bare.toLowerCase()).slice(0, prefix_groups)
  return `${prefix.map((group) => group.replace(/^0+(?=.)/, "")).join(":")}::/64`
}
