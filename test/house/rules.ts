/**
 * The house rules that a machine can check, as data. Each rule has an example that violates it, so
 * that a rule that no longer finds anything is noticed. Source: CONTRIBUTING.md.
 */
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { importsOf, linesWith, root, type TreeFile, withoutComments } from "./tree.ts"

export interface Rule {
  readonly name: string
  /** The files that the rule applies to. */
  readonly files: RegExp
  /** The problems in one file, each with how to fix it. */
  readonly problems: (file: TreeFile) => ReadonlyArray<string>
  /** A file that violates the rule. */
  readonly broken: TreeFile
}

interface Reach {
  /** Our folders, or single files in a folder. */
  readonly folders: ReadonlyArray<string>
  readonly packages: RegExp
}

/** Allowed imports of each folder besides its own files; subfolders come before their parents. */
const arrow: Readonly<Record<string, Reach>> = {
  // Metrics are rendered as text there.
  schemas: { folders: [], packages: /^effect(\/observability)?$/ },
  events: { folders: ["schemas"], packages: /^effect$/ },
  actors: { folders: ["events", "schemas"], packages: /^(effect|xstate|croner|uuid|#placement)$/ },
  projections: { folders: ["events", "schemas"], packages: /^(effect|kysely)$/ },
  gateway: {
    folders: ["actors", "projections", "events", "schemas"],
    packages: /^(effect(\/http|\/http-api|\/encoding|\/observability)?|#placement)$/,
  },
  adapters: {
    // The ports that only the gateway needs are in its folder.
    folders: [
      "actors",
      "projections",
      "events",
      "schemas",
      "launcher",
      "#gateway/caller.ts",
      "#gateway/identity.ts",
      "#gateway/transport.ts",
      "#gateway/blob-storage/cursors.ts",
      "#gateway/capital-pressure/dashboard-reader.ts",
      // Data types that the listener sends.
      "#gateway/door.ts",
      "#gateway/envelope.ts",
      "#gateway/direct.ts",
    ],
    packages: /./,
  },
  // It calls a server over HTTP. Its flags are the fields that the API's schemas describe.
  "cli/client": {
    folders: ["schemas"],
    packages: /^(effect|node:.+|smol-toml|yaml|@napi-rs\/blake-hash)$/,
  },
  cli: {
    folders: [
      "server",
      "gateway",
      "adapters",
      "actors",
      "projections",
      "events",
      "schemas",
      "launcher",
    ],
    packages: /./,
  },
  server: {
    folders: ["gateway", "adapters", "actors", "projections", "events", "schemas", "launcher"],
    packages: /./,
  },
  // Only code that the installed Node runs may import a package: the bundler.
  launcher: { folders: [], packages: /^(node:|rolldown$)/ },
  // It runs in a browser, and knows the server only through its responses.
  web: { folders: [], packages: /^(marked|uplot|vite|node:path)$/ },
}

/** `system` holds the internal aggregates, which every service may use. */
const services = [
  "blob-storage",
  "share-protection",
  "capital-pressure",
  "carrier-search",
  "plant-disease",
  "system",
]

const columns_max = 100
const lines_max = 400
const docstring_lines_max = 5

const code = /\.(ts|mts|mjs)$/
const ours =
  /^(actors|adapters|cli|events|gateway|packages\/[a-z-]+\/(?!test\/)|projections|schemas|server|main\.ts)/
const middle =
  /^(actors|events|gateway|projections|schemas|packages\/(cluster|erasure)(?!\/test\/))\//
const past_tense =
  /(ed|Begun|Broken|Found|Held|Kept|Left|Lost|Made|Met|Offline|Recast|Sent|Set|Taken|Withdrawn)$/
const base = /extends \(?(Context|Schema|HttpApiMiddleware)\./

const folderOf = (path: string) =>
  Object.keys(arrow).find((folder) => path.startsWith(`${folder}/`)) ?? ""
const serviceOf = (path: string) => path.split("/").find((part) => services.includes(part))

const arrowProblems = ({ path, text }: TreeFile) => {
  const folder = folderOf(path)
  const allowed = arrow[folder]
  if (!allowed) return []
  return importsOf(text).flatMap((from) => {
    const [, other] = /^#(\w+)\//.exec(from) ?? /^(?:\.\.\/)+(launcher)\//.exec(from) ?? []
    const may = other
      ? from.startsWith(`#${folder}/`) ||
        allowed.folders.some((part) => part === other || part === from)
      : from.startsWith(".") || allowed.packages.test(from)
    return may ? [] : [`${folder} must not import ${from}`]
  })
}

const serviceProblems = ({ path, text }: TreeFile) => {
  const service = serviceOf(path)
  if (!service) return []
  return importsOf(text).flatMap((from) => {
    const other = serviceOf(from)
    const may = !other || other === service || other === "system"
    return may ? [] : [`${service} must not import ${from}: services do not know each other`]
  })
}

/** A heading's anchor, as GitHub makes it. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/\]\([^)]*\)|[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-")

const anchorsOf = (text: string) =>
  [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading))

/** The links of a page to files and headings of ours. Links to other hosts are not followed. */
const linksOf = ({ path, text }: TreeFile) =>
  [...text.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, target = "", anchor]) => ({
    target,
    anchor,
    file: target === "" ? join(root, path) : join(root, dirname(path), target),
  }))

const linkProblems = (page: TreeFile) =>
  linksOf(page)
    .filter(({ target, file }) => target !== "" && !existsSync(file))
    .map(({ target }) => `the link to ${target} leads nowhere`)

const anchorProblems = (page: TreeFile) =>
  linksOf(page).flatMap(({ target, anchor, file }) => {
    if (anchor === undefined || !file.endsWith(".md") || !existsSync(file)) return []
    const headings = anchorsOf(target === "" ? page.text : readFileSync(file, "utf8"))
    return headings.includes(anchor) ? [] : [`${target} has no heading #${anchor}`]
  })

const titles = (text: string) => text.replaceAll(/^```[\s\S]*?^```/gm, "").match(/^# .+$/gm) ?? []

/** Maximum distance of a cast from the comment above it that gives the reason. */
const reason_lines_max = 3
/** If all casts of a kind are in one file, its opening comment gives the reason. */
const opening_lines_max = 15

/** A cast needs a comment next to it or just above. XState's `{} as` is exempt. */
const castProblems = ({ text }: TreeFile) => {
  const lines = text.split("\n")
  if (lines.slice(0, opening_lines_max).some((line) => /^\s*\*.*\bcasts?\b/.test(line))) return []
  const bare = withoutComments(text).split("\n")
  return bare.flatMap((line, index) => {
    if (!/[\w)\]}] as (?!const\b)(unknown|never|[A-Z][\w.]*|\{)/.test(line)) return []
    if (/^\s*(import|export)\b.*\bfrom\b|^\s*(type )?\w+ as \w+,?$|^import |\{\} as/.test(line))
      return []
    const near = lines.slice(Math.max(0, index - reason_lines_max), index + 1).join("\n")
    return /\/\/|\*\//.test(near) ? [] : [`${index + 1}: write the reason of the cast beside it`]
  })
}

const docstringProblems = ({ text }: TreeFile) =>
  [...text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*export (?:const|function)/g)].flatMap(
    ([, comment = "", ..._rest]) => {
      const lines = comment.split("\n").filter((line) => /[^\s*]/.test(line)).length
      if (lines <= docstring_lines_max) return []
      return [
        `"${comment.trim().slice(0, 40)}": a docstring is at most ${docstring_lines_max} lines`,
      ]
    },
  )

/** A rule that no code line may match the pattern; optionally checks comments and strings too. */
const forbids = (
  name: string,
  files: RegExp,
  pattern: RegExp,
  advice: string,
  broken: TreeFile,
  comments: "with comments" | "without comments" = "without comments",
): Rule => ({
  name,
  files,
  problems: ({ text }) =>
    linesWith(comments === "with comments" ? text : withoutComments(text), pattern, advice),
  broken,
})

export const rules: ReadonlyArray<Rule> = [
  {
    name: "imports follow the arrow",
    files: code,
    problems: arrowProblems,
    broken: { path: "schemas/a.ts", text: 'import type { A } from "#events/a.ts"\n' },
  },
  {
    name: "a service never imports another service",
    files: code,
    problems: serviceProblems,
    broken: {
      path: "actors/blob-storage/a.ts",
      text: 'import { B } from "#schemas/plant-disease/b.ts"\n',
    },
  },
  {
    name: "another folder is imported by its #name",
    files: new RegExp(`^(?!packages/)${ours.source.slice(1)}.*\\.ts$`),
    problems: ({ text }) =>
      importsOf(text)
        .filter((from) => /^\.\.\//.test(from) && !/^(\.\.\/)+launcher\//.test(from))
        .map((from) => `import ${from} as #folder/...`),
    broken: { path: "actors/a.ts", text: 'import { b } from "../events/b.ts"\n' },
  },
  forbids(
    "the middle has no clock, random or I/O",
    middle,
    new RegExp(
      [
        String.raw`Date\.now|new Date\(\)|Math\.random|performance\.now|randomUUID`,
        String.raw`(?<!\bpeers\.)\bfetch\(|console\.|setTimeout|setInterval`,
        String.raw`(?<![\w.])process\.(env|argv|exit|hrtime|pid|cwd|platform|std\w+|on|kill)\b`,
      ].join("|"),
    ),
    "time, ids and I/O come from the shell",
    { path: "actors/a.ts", text: "const now = Date.now()\n" },
  ),
  {
    name: `lines have at most ${columns_max} columns`,
    files: /\.(ts|mts|mjs)$|\.ci\/run$/,
    problems: ({ text }) =>
      text.split("\n").flatMap((line, index) => {
        const columns = Array.from(line).length
        return columns > columns_max ? [`${index + 1}: ${columns} columns: break the line`] : []
      }),
    broken: { path: "a.ts", text: "x".repeat(101) },
  },
  {
    name: `files have at most ${lines_max} lines`,
    files: code,
    problems: ({ text }) =>
      text.split("\n").length > lines_max + 1 ? [`longer than ${lines_max} lines: split it`] : [],
    broken: { path: "a.ts", text: "\n".repeat(401) },
  },
  {
    name: "events are named in the past tense",
    files: /^events\/.+\/.+\.ts$/,
    problems: ({ text }) =>
      [...text.matchAll(/= message\(\s*"(\w+)"/g)]
        .filter(([, name = ""]) => !past_tense.test(name))
        .map(([, name]) => `${name}: an event says what happened`),
    broken: { path: "events/system/a.ts", text: 'export const A = message("NodeJoins", {})\n' },
  },
  forbids(
    "there are no default exports",
    /^(?!.*\.config\.ts$).*\.(ts|mts|mjs)$/,
    /^export default\b/,
    "export it by name",
    { path: "a.ts", text: "export default 1\n" },
  ),
  {
    name: "files are nouns in kebab case, and none is a drawer",
    files: code,
    problems: ({ path }) => {
      const drawer = /(^|\/)(utils?|helpers?|common|shared|core|lib|misc|index)(\.|\/|$)/
      const name = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)+$/
      if (drawer.test(path)) return ["name it for what it holds"]
      return name.test(path.split("/").at(-1) ?? "") ? [] : ["name it in kebab case"]
    },
    broken: { path: "actors/utils.ts", text: "" },
  },
  forbids(
    "classes are services and errors only",
    ours,
    new RegExp(`^\\s*(?:export )?(?:abstract )?class \\w+\\b(?! ${base.source})`),
    "write a function",
    { path: "actors/a.ts", text: "export class Pool {}\n" },
  ),
  forbids(
    "Node can strip the types",
    code,
    /^\s*(export )?(const |declare )?(enum|namespace) \w|constructor\((private|public|readonly)/,
    "use erasable syntax only",
    { path: "a.ts", text: "enum A { B }\n" },
  ),
  forbids(
    "nothing is spread that is written out there",
    // A table keeps a row's fields together.
    /^(?!(.+\/)?test\/|schemas\/capital-pressure\/registry\.ts$).+\.(ts|mjs)$/,
    /\.\.\.(\{|\(\[.*\] as const\),$)/,
    "write its members where it stands",
    { path: "actors/a.ts", text: "const a = { ...{ b, c }, d }\n" },
  ),
  {
    name: "a cast has its reason beside it",
    files: new RegExp(`${ours.source}.*\\.ts$`),
    problems: castProblems,
    broken: { path: "actors/a.ts", text: "\n\n\nconst a = b as Policy\n" },
  },
  {
    name: `docstrings have at most ${docstring_lines_max} lines`,
    files: new RegExp(`${ours.source}.*\\.ts$`),
    problems: docstringProblems,
    broken: { path: "actors/a.ts", text: `/**\n${" * a\n".repeat(6)} */\nexport const a = 1\n` },
  },
  forbids(
    "nothing is left to do, commented out or ruled off",
    code,
    new RegExp(
      [
        String.raw`\b(TODO|FIXME|XXX)\b`,
        String.raw`^\s*// (const|let|import|return|await|yield\*|if \() ?\S*.*[({=]$`,
        String.raw`^\s*(//|\*) ?[-=*#_]{4,}`,
      ].join("|"),
    ),
    "do it, delete it, or open an issue",
    { path: "a.ts", text: "// TODO: later\n" },
    "with comments",
  ),
  forbids(
    "there are no emoji",
    /./,
    /\p{Extended_Pictographic}(?<![©®™↔])/u,
    "say it in words",
    { path: "a.md", text: "# Done \u{1F389}\n" },
    "with comments",
  ),
  forbids(
    "tests use no mocks and leave no test out",
    /(^|\/)test\/.*\.ts$/,
    /\bvi\.(mock|fn|spyOn|stub\w+)\(|\b(it|test|describe)(\.effect)?\.only\(/,
    "use an in-memory adapter that passes the contract; run every test",
    { path: "test/a.test.ts", text: 'it.only("a", () => undefined)\n' },
  ),
  forbids(
    "a module that tests share registers no hook when it is loaded",
    /(^|\/)test\/(?!.*\.(test|services)\.ts$).*\.ts$/,
    /^(before|after)(All|Each)\(/,
    "files share processes, which load a module once: call it in a function that each file calls",
    { path: "test/world/a.ts", text: "afterAll(() => undefined)\n" },
  ),
  forbids(
    "no registry, mirror or workplace is named",
    /./,
    /registry[.](npmjs|yarnpkg)|npm[.]pkg[.]|[.]pkg[.]dev|deb[.]debian|(^|[^\w.])\/work\/(main|shared)/,
    "the machine's own configuration says where packages come from",
    { path: "package-lock.json", text: `"resolved": "https://registry${"."}npmjs.org/effect"\n` },
    "with comments",
  ),
  {
    name: "a document has one title",
    files: /\.md$/,
    problems: ({ text }) => {
      const count = titles(text).length
      return count === 1 ? [] : [`${count} lines begin with "# ": keep one title`]
    },
    broken: { path: "a.md", text: "# One\n\n# Two\n" },
  },
  {
    name: "links between documents lead somewhere",
    files: /\.md$/,
    problems: linkProblems,
    broken: { path: "a.md", text: "[gone](docs/gone.md)\n" },
  },
  {
    name: "links between documents name a heading that exists",
    files: /\.md$/,
    problems: anchorProblems,
    broken: { path: "README.md", text: "# A\n\n[gone](#b)\n" },
  },
]
