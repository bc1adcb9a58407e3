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
  const walk = (part: unknown, at: string) => {
    if (typeof part !== "object" || part === null || isEmpty(part)) {
      all.set(at, JSON.stringify(part) ?? "undefined")
    } else if (Array.isArray(part)) {
      for (const [index, one] of part.entries()) walk(one, `${at}[${index}]`)
    } else {
      for (const [key, one] of Object.entries(part)) walk(one, at === "" ? key : `${at}.${key}`)
    }
  }
  walk(value, path)
  // An empty snapshot has no fields.
  if (all.get("") === "{}") all.delete("")
  return all
}

const is_hollow = new Set(["[]", "{}"])

/** Whether any of these fields is inside `path`. */
const hasParts = (fields: ReadonlyMap<string, string>, path: string) =>
  [...fields.keys()].some((other) => other.startsWith(`${path}[`) || other.startsWith(`${path}.`))

/** All fields of both snapshots in the order of the new one; removed fields come last. */
export const compareFields = (before: unknown, now: unknown): readonly Field[] => {
  const old = before === undefined ? new Map<string, string>() : flatten(before)
  const present = flatten(now)
  // A list that becomes empty, or stops being empty, is reported by its parts only.
  const beforeOf = (path: string, text: string) =>
    is_hollow.has(text) && hasParts(old, path) ? text : old.get(path)
  const gone = [...old].filter(
    ([path, text]) => !present.has(path) && !(is_hollow.has(text) && hasParts(present, path)),
  )
  return [
    ...[...present].map(([path, text]) => ({ path, before: beforeOf(path, text), now: text })),
    ...gone.map(([path, text]) => ({ path, before: text, now: undefined })),
  ]
}

export const isChanged = ({ before, now }: Field): boolean => before !== now
