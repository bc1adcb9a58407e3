/**
 * Which version of what nodes say to each other two of them speak: the newest that both know. Each
 * side says in its upgrade which ones it knows, so that nodes of two releases work together while
 * one after the other is exchanged.
 *
 * 1: as before versions were said. A copy is told without the time of its last put, and two
 *    operations are missing.
 * 2: a copy says when it was put last; `renew`, `ring`, and `keeps` that reads.
 * 3: small copies go together, by `replicate_many`.
 *
 * A version that is dropped here has to have been left behind by a release before (decision 0147).
 */

export interface LinkVersions {
  readonly oldest: number
  readonly newest: number
}

export const link_versions: LinkVersions = { oldest: 1, newest: 3 }

/** What copies say when they were put last from, and `renew` and `ring` can be asked. */
export const version_with_puts = 2

/** Where many copies can be one question from. */
export const version_with_batches = 3

export const version_header = "x-almanac-link"

/** Who says nothing of versions is of a release from before they were said. */
const unsaid: LinkVersions = { oldest: 1, newest: 1 }

export const writeVersions = ({ oldest, newest }: LinkVersions) => `${oldest}-${newest}`

export const readVersions = (header: string | ReadonlyArray<string> | undefined): LinkVersions => {
  const [, oldest, newest] = /^(\d{1,4})-(\d{1,4})$/.exec(String(header)) ?? []
  return oldest === undefined ? unsaid : { oldest: Number(oldest), newest: Number(newest) }
}

/** The newest that both speak; undefined where there is none. */
export const sharedVersion = (one: LinkVersions, other: LinkVersions) => {
  const newest = Math.min(one.newest, other.newest)
  return newest < Math.max(one.oldest, other.oldest) ? undefined : newest
}

const told = ({ oldest, newest }: LinkVersions) =>
  oldest === newest ? `version ${newest}` : `versions ${oldest} to ${newest}`

/** Why two cannot talk, for an operator: `who` speaks `theirs`. */
export const versionsApart = (who: string, theirs: LinkVersions, ours: LinkVersions) => {
  const whose = theirs.newest < ours.oldest ? who : "this node"
  const known = `${who} speaks ${told(theirs)} of the link between nodes, this node ${told(ours)}`
  return `${known}: ${whose} needs a newer release`
}
