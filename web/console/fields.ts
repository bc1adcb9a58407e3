/** Flattens a snapshot into fields and compares two snapshots. Pure. */

export interface Field {
  /** `backup.backup_id`, `slots[2].fence`. */
  readonly path: string
  /** JSON; undefined if absent. */
  readonly before: string | undefined
  readonly now: string | undefined
}

const isEmpty = (value: object) => Object.keys(value).length === 0

/** All leaf values by path; an empty object or list is a leaf too. */
export const flatten = (value: unknown, path = ""): ReadonlyMap<string, string> => {
  const all = new Map<string, string>()
  const visit = (part: unknown, at: string) => {
    if (typeof part !== "object" || part === null || isEmpty(part)) {
      all.set(at, JSON.stringify(part) ?? "undefined")
    } else if (Array.isArray(part)) {
      for (const [index, item] of part.entries()) visit(item, `${at}[${index}]`)
    } else {
      for (const [key, item] of Object.entries(part)) visit(item, at === "" ? key : `${at}.${key}`)
    }
  }
  visit(value, path)
  // An empty snapshot has no fields.
  if (all.get("") === "{}") all.delete("")
  return all
}

const empty_values = new Set(["[]", "{}"])

/** Whether any of these fields is inside `path`. */
const hasParts = (fields: ReadonlyMap<string, string>, path: string) =>
  [...fields.keys()].some((other) => other.startsWith(`${path}[`) || other.startsWith(`${path}.`))

/** All fields of both snapshots in the order of the new one; removed fields come last. */
export const compareFields = (before: unknown, now: unknown): readonly Field[] => {
  const previous = before === undefined ? new Map<string, string>() : flatten(before)
  const current = flatten(now)
  // If a list becomes empty or stops being empty, only its parts are reported.
  const beforeOf = (path: string, text: string) =>
    empty_values.has(text) && hasParts(previous, path) ? text : previous.get(path)
  const gone = [...previous].filter(
    ([path, text]) => !current.has(path) && !(empty_values.has(text) && hasParts(current, path)),
  )
  return [
    ...[...current].map(([path, text]) => ({ path, before: beforeOf(path, text), now: text })),
    ...gone.map(([path, text]) => ({ path, before: text, now: undefined })),
  ]
}

export const isChanged = ({ before, now }: Field): boolean => before !== now
