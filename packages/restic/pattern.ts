/**
 * Patterns of files, as a policy has them and as restic takes them.
 *
 * restic looks at whole paths of the machine: `/a` would be the machine's own, and `home` any
 * folder above the share. So each pattern is put below the share's folder.
 */

const special = /[\\*?[\]]/g

/** The path as a pattern that matches nothing else. */
export const literal = (path: string) => path.replaceAll(special, String.raw`\$&`)

/** The pattern below a folder, which is absolute and without a slash at its end. */
export const patternBelow = (folder: string, pattern: string) => {
  const parts = partsOf(pattern).join("/")
  return `${literal(folder)}/${isAnchored(pattern) ? "" : "**/"}${parts}`
}

const isAnchored = (pattern: string) => pattern.startsWith("/")
/** `.` is the folder itself, as restic has it too. */
const partsOf = (pattern: string) =>
  pattern.split("/").filter((part) => part !== "" && part !== ".")

/** What a path is to some patterns: matched, the folder of what may match, or neither. */
export type Fit = "matched" | "above" | "none"

/** Whether an item fits; "any" stands for however many of them. */
type Token<Item> = "any" | ((item: Item) => boolean)

/** The pattern's parts from the share's folder on. */
const wordsOf = (pattern: string) => [...(isAnchored(pattern) ? [] : ["**"]), ...partsOf(pattern)]

const tokensOf = (pattern: string) =>
  wordsOf(pattern).map((part): Token<string> => (part === "**" ? "any" : partMatcher(part)))

/**
 * What these patterns match at a path and below it, as patterns from the share's folder on; an
 * empty path is that folder.
 */
export const patternsIn = (patterns: ReadonlyArray<string>, path: string) => {
  const parts = path.split("/").slice(1)
  const walks = patterns.map((pattern) => ({ pattern, ...walk(tokensOf(pattern), parts) }))
  if (walks.some(({ is_begun }) => is_begun)) return [path === "" ? "/*" : literal(path)]
  return walks.flatMap(({ pattern, places }) =>
    places.map((place) => `${literal(path)}/${wordsOf(pattern).slice(place).join("/")}`),
  )
}

/** Tells what a path, in its parts from the share's folder, is to these patterns. */
export const fitter = (patterns: ReadonlyArray<string>) => {
  const all = patterns.map(tokensOf)
  return (path: ReadonlyArray<string>): Fit => {
    const walks = all.map((tokens) => walk(tokens, path))
    if (walks.some(({ is_begun }) => is_begun)) return "matched"
    return walks.some(({ is_open }) => is_open) ? "above" : "none"
  }
}

/**
 * Walks the items by the tokens, at every place where they may be at once: no pattern of a tenant
 * takes longer than its length times the items'.
 */
const walk = <Item>(tokens: ReadonlyArray<Token<Item>>, items: Iterable<Item>) => {
  const end = tokens.length
  let places = reached(tokens, [0])
  let is_begun = places.has(end)
  for (const item of items) {
    const next = [...places].flatMap((place) => {
      const token = tokens[place]
      if (token === "any") return [place]
      return token?.(item) ? [place + 1] : []
    })
    places = reached(tokens, next)
    is_begun ||= places.has(end)
  }
  /**
   * is_begun: they matched some first items. is_whole: all. is_open: with more they may. places:
   * of the tokens from which on they must match what follows.
   */
  return { is_begun, is_whole: places.has(end), is_open: places.size > 0, places: [...places] }
}

/** "any" may stand for none. */
const reached = <Item>(tokens: ReadonlyArray<Token<Item>>, places: ReadonlyArray<number>) => {
  const all = new Set(places)
  for (const place of all) if (tokens[place] === "any") all.add(place + 1)
  return all
}

/** One part of a path, by the rules of Go's `filepath.Match`, which are restic's. */
const partMatcher = (part: string): ((name: string) => boolean) => {
  if (!/[\\*?[]/.test(part)) return (name) => name === part
  const found = part.match(/\\.|\[(?:\\.|[^\]\\])+\]|[\s\S]/gu) ?? []
  const tokens = found.map(tokenOf)
  return (name) => walk(tokens, name).is_whole
}

const tokenOf = (text: string): Token<string> => {
  if (text === "*") return "any"
  if (text === "?") return () => true
  if (text.length > 2 && text.startsWith("[")) return setOf(text.slice(1, -1))
  const plain = text.length > 1 && text.startsWith("\\") ? text.slice(1) : text
  return (character) => character === plain
}

/** `a-z0-9`, or with `^` before it all but these. */
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
