/** Finds names in audit filters that no event of this release has. */
import { typesOf } from "#schemas/message.ts"
import { nearest, quoted } from "#schemas/setting.ts"
import type { AuditFilters } from "#schemas/system/audit.ts"
import { deciders } from "#server/aggregate-kinds.ts"

/** Service and aggregate kind of each decider. */
const parts = () => deciders.map(({ name }) => name.split("."))

const known = {
  service: () => parts().flatMap(([service]) => service ?? []),
  aggregate: () => parts().flatMap(([, aggregate]) => aggregate ?? []),
  type: () => deciders.flatMap(({ event }) => [...typesOf(event)]),
} as const

const fields = ["service", "aggregate", "type"] as const

/**
 * A warning for each unknown name, with the closest known one. It is not an error, because a newer
 * release on the same log may write events with other names.
 */
export const unknownNames = (filters: AuditFilters): ReadonlyArray<string> =>
  fields.flatMap((field) => {
    const name = filters[field]
    if (name === undefined) return []
    const names = [...new Set(known[field]())]
    if (names.includes(name)) return []
    const near = nearest(name, names)
    const hint = near === undefined ? "" : `; did you mean ${near}?`
    return [`--${field}: no event of this release has the ${field} ${quoted(name)}${hint}`]
  })
