/** A snapshot's fields, one line each, and which of them a commit changed. Pure. */

export interface Field {
  /** `backup.backup_id`, `slots[2].fence`. */
  readonly path: string
  /** As JSON; undefined where it was not there. */
  readonly before: string | undefined
  readonly now: string | undefined
}

const isEmpty = (value: object) => Object.keys(value).length === 0

/** Every value that has no parts, by its path; what is empty is a value too. */
export const flat = (value: unknown, path = ""): ReadonlyMap<string, string> => {
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
  // A snapshot without anything in it has no fields.
  if (all.get("") === "{}") all.delete("")
  return all
}

const is_hollow = new Set(["[]", "{}"])

/** Whether a path has parts among these. */
const hasParts = (fields: ReadonlyMap<string, string>, path: string) =>
  [...fields.keys()].some((other) => other.startsWith(`${path}[`) || other.startsWith(`${path}.`))

/** All fields of both, in the order in which they stand now; what is gone comes last. */
export const compared = (before: unknown, now: unknown): readonly Field[] => {
  const old = before === undefined ? new Map<string, string>() : flat(before)
  const present = flat(now)
  // That a list became empty, or is so no more, is told by its parts.
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
