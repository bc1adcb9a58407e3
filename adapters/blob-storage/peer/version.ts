/**
 * Negotiates the protocol version of a link: the newest that both nodes support. Each side sends
 * its supported versions in the upgrade, so that two releases work together during a rolling
 * upgrade.
 *
 * 1: before versions were sent. Copies lack the time of their last put, and `renew` and `ring` are
 * missing.
 *
 * 2: copies have `put_at`; adds `renew`, `ring`, and `keeps` with verification.
 *
 * 3: small copies are sent in batches with `replicate_many`.
 *
 * A version may be removed one release after the last node that needs it (decision 0147).
 */

export interface LinkVersions {
  readonly oldest: number
  readonly newest: number
}

export const link_versions: LinkVersions = { oldest: 1, newest: 3 }

/** First version with `put_at` in copies, `renew` and `ring`. */
export const version_with_puts = 2

/** First version with batches of copies. */
export const version_with_batches = 3

export const version_header = "x-almanac-link"

/** A node without the header runs a release from before versions were sent. */
const versions_default: LinkVersions = { oldest: 1, newest: 1 }

export const writeVersions = ({ oldest, newest }: LinkVersions) => `${oldest}-${newest}`

export const readVersions = (header: string | ReadonlyArray<string> | undefined): LinkVersions => {
  const [, oldest, newest] = /^(\d{1,4})-(\d{1,4})$/.exec(String(header)) ?? []
  return oldest === undefined
    ? versions_default
    : { oldest: Number(oldest), newest: Number(newest) }
}

/** The newest common version; undefined if there is none. */
export const sharedVersion = (one: LinkVersions, other: LinkVersions) => {
  const newest = Math.min(one.newest, other.newest)
  return newest < Math.max(one.oldest, other.oldest) ? undefined : newest
}

const textOf = ({ oldest, newest }: LinkVersions) =>
  oldest === newest ? `version ${newest}` : `versions ${oldest} to ${newest}`

/** Explains a version mismatch to an operator. */
export const versionMismatch = (node: string, theirs: LinkVersions, ours: LinkVersions) => {
  const outdated = theirs.newest < ours.oldest ? node : "this node"
  const [our_text, their_text] = [textOf(ours), textOf(theirs)]
  const difference = `${node} supports ${their_text} of the node protocol, this node ${our_text}`
  return `${difference}: ${outdated} needs a newer release`
}
