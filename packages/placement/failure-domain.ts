/**
 * Failure domains: nodes on one host fail together, so the copies or shards of a blob are spread
 * over as many hosts as possible. A node's host is derived from its address and is not configured.
 * Pure.
 *
 * Source: blob facts §7; decision 0164.
 */

/** The host of `host:port`: nodes that differ only in their ports are on one machine. */
export const hostOf = (address: string) => address.replace(/:\d+$/, "").toLowerCase()

/** Assignment of nodes to failure domains. */
export interface Domains {
  /** The domain of each node, from 0. */
  readonly domain_of: ReadonlyArray<number>
  /** Number of nodes per domain. */
  readonly sizes: ReadonlyArray<number>
}

/** Groups nodes into domains by host; a node without a host is its own domain. */
export const domainsOf = (hosts: ReadonlyArray<string | undefined>): Domains => {
  const numbers = new Map<string | number, number>()
  const domain_of = hosts.map((host, at) => {
    const known = numbers.get(host ?? at)
    if (known !== undefined) return known
    numbers.set(host ?? at, numbers.size)
    return numbers.size - 1
  })
  const sizes = Array.from({ length: numbers.size }, () => 0)
  for (const domain of domain_of) sizes[domain] = (sizes[domain] ?? 0) + 1
  return { domain_of, sizes }
}

/** Maximum copies in one domain when `copies` copies are spread as widely as possible. */
export const copiesInOne = ({ domain_of, sizes }: Domains, copies: number) => {
  const wanted = Math.min(copies, domain_of.length)
  let most = 1
  while (sizes.reduce((sum, size) => sum + Math.min(size, most), 0) < wanted) most++
  return most
}

/**
 * Divides copies by weight, with at most `most` for each: the excess is divided among the others.
 */
const divided = (
  weights: ReadonlyArray<number>,
  copies: number,
  most: (at: number) => number,
): ReadonlyArray<number> => {
  const shares = weights.map(() => 0)
  let left = copies
  let open = [...weights.keys()]
  for (;;) {
    const total = open.reduce((sum, at) => sum + (weights[at] ?? 0), 0)
    const deserved = (at: number) => (left * (weights[at] ?? 0)) / total
    const full = open.filter((at) => deserved(at) >= most(at))
    for (const at of full) {
      shares[at] = most(at)
      left -= most(at)
    }
    if (full.length > 0) {
      open = open.filter((at) => !full.includes(at))
      if (left > 0 && open.length > 0) continue
    } else for (const at of open) shares[at] = deserved(at)
    return shares
  }
}

/**
 * Fair share of `copies` copies per node, by its weight and its domain's: no node has two copies of
 * one blob, and no domain more than `copiesInOne`.
 */
export const sharesOf = (
  domains: Domains,
  weights: ReadonlyArray<number>,
  copies: number,
): ReadonlyArray<number> => {
  const { domain_of, sizes } = domains
  const weight_of = sizes.map(() => 0)
  for (const [at, domain] of domain_of.entries()) {
    weight_of[domain] = (weight_of[domain] ?? 0) + (weights[at] ?? 0)
  }
  const most = copiesInOne(domains, copies)
  const of_domains = divided(weight_of, copies, (domain) => Math.min(sizes[domain] ?? 0, most))
  const shares = weights.map(() => 0)
  for (const [domain, share] of of_domains.entries()) {
    const own = [...domain_of.keys()].filter((at) => domain_of[at] === domain)
    const weights_of_own = own.map((at) => weights[at] ?? 0)
    const shared = own.length === 1 ? [share] : divided(weights_of_own, share, () => 1)
    for (const [n, at] of own.entries()) shares[at] = shared[n] ?? 0
  }
  return shares
}
