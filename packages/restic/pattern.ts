/**
 * File patterns of policies, and their translation for restic.
 *
 * restic matches absolute paths: `/a` would mean the machine's root, and `home` any folder above
 * the share. So each pattern is prefixed with the share's folder.
 */

const special = /[\\*?[\]]/g

/** Escapes a path so that it matches only itself. */
export const literal = (path: string) => path.replaceAll(special, String.raw`\$&`)

/** The pattern below a folder, given as an absolute path without a trailing slash. */
export const patternBelow = (folder: string, pattern: string) => {
  const parts = partsOf(pattern).join("/")
  return `${literal(folder)}/${isAnchored(pattern) ? "" : "**/"}${parts}`
}

const isAnchored = (pattern: string) => pattern.startsWith("/")
/** `.` means the folder itself, as in restic. */
const partsOf = (pattern: string) =>
  pattern.split("/").filter((part) => part !== "" && part !== ".")

/** How a path relates to patterns: matched, a folder that may contain matches, or neither. */
export type PathMatch = "matched" | "above" | "none"

/** A predicate for one item, or "any" for any number of items. */
type Token<Item> = "any" | ((item: Item) => boolean)

/** The parts of the pattern, relative to the share's folder. */
const partsFromRoot = (pattern: string) => [
  ...(isAnchored(pattern) ? [] : ["**"]),
  ...partsOf(pattern),
]

const tokensOf = (pattern: string) =>
  partsFromRoot(pattern).map((part): Token<string> => (part === "**" ? "any" : partMatcher(part)))

/**
 * The patterns that select the matches at and below a path, relative to the share's folder; an
 * empty path is that folder.
 */
export const patternsIn = (patterns: ReadonlyArray<string>, path: string) => {
  const parts = path.split("/").slice(1)
  const matches = patterns.map((pattern) => ({ pattern, ...match(tokensOf(pattern), parts) }))
  if (matches.some(({ is_begun }) => is_begun)) return [path === "" ? "/*" : literal(path)]
  return matches.flatMap(({ pattern, positions }) =>
    positions.map(
      (position) => `${literal(path)}/${partsFromRoot(pattern).slice(position).join("/")}`,
    ),
  )
}

/** Classifies paths, given as parts relative to the share's folder. */
export const makeMatcher = (patterns: ReadonlyArray<string>) => {
  const all = patterns.map(tokensOf)
  return (path: ReadonlyArray<string>): PathMatch => {
    const matches = all.map((tokens) => match(tokens, path))
    if (matches.some(({ is_begun }) => is_begun)) return "matched"
    return matches.some(({ is_open }) => is_open) ? "above" : "none"
  }
}

/**
 * Matches items against tokens, tracking all possible positions at once: the time is at most the
 * product of both lengths, for every pattern.
 */
const match = <Item>(tokens: ReadonlyArray<Token<Item>>, items: Iterable<Item>) => {
  const end = tokens.length
  let positions = withSkips(tokens, [0])
  let is_begun = positions.has(end)
  for (const item of items) {
    const next = [...positions].flatMap((position) => {
      const token = tokens[position]
      if (token === "any") return [position]
      return token?.(item) ? [position + 1] : []
    })
    positions = withSkips(tokens, next)
    is_begun ||= positions.has(end)
  }
  /**
   * `is_begun`: the tokens match a prefix of the items. `is_whole`: they match all items.
   * `is_open`: more items could match. `positions`: where the remaining tokens may start.
   */
  return {
    is_begun,
    is_whole: positions.has(end),
    is_open: positions.size > 0,
    positions: [...positions],
  }
}

/** "any" may match no item. */
const withSkips = <Item>(tokens: ReadonlyArray<Token<Item>>, positions: ReadonlyArray<number>) => {
  const all = new Set(positions)
  for (const position of all) if (tokens[position] === "any") all.add(position + 1)
  return all
}

/** Matches one part of a path by the rules of Go's `filepath.Match`, which restic uses. */
const partMatcher = (part: string): ((name: string) => boolean) => {
  if (!/[\\*?[]/.test(part)) return (name) => name === part
  const found = part.match(/\\.|\[(?:\\.|[^\]\\])+\]|[\s\S]/gu) ?? []
  const tokens = found.map(tokenOf)
  return (name) => match(tokens, name).is_whole
}

const tokenOf = (text: string): Token<string> => {
  if (text === "*") return "any"
  if (text === "?") return () => true
  if (text.length > 2 && text.startsWith("[")) return setOf(text.slice(1, -1))
  const plain = text.length > 1 && text.startsWith("\\") ? text.slice(1) : text
  return (character) => character === plain
}

/** A character set such as `a-z0-9`, negated by a leading `^`. */
const setOf = (text: string) => {
  const is_wanted = !text.startsWith("^")
  const ranges = [
    ...(is_wanted ? text : text.slice(1)).matchAll(/\\?([\s\S])(?:-\\?([\s\S]))?/gu),
  ].map(([, low = "", high = low]) => [codeOf(low), codeOf(high)] as const)
  return (character: string) => {
    const code = codeOf(character)
    return ranges.some(([low, high]) => code >= low && code <= high) === is_wanted
  }
}

const codeOf = (character: string) => character.codePointAt(0) ?? 0
