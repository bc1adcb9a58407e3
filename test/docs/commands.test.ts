/**
 * Every command in the documents exists, with the flags that they give it: in blocks, in prose and
 * in examples of `--help`. Guides' blocks also run, in tests of their own.
 */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { readTree, root } from "../house/tree.ts"

/** A command line in a document, with its place. */
interface Mention {
  readonly at: string
  readonly words: ReadonlyArray<string>
}

/** By path, such as "audit list": the flags; the subcommands are longer paths. */
type Commands = ReadonlyMap<string, ReadonlySet<string>>

/** Loading the tree of all commands takes seconds on a busy machine. */
const completion_ms_max = 60_000

/** The commands of the command line, from its own completion script. */
const readCommands = (): Commands => {
  const script = execFileSync(process.execPath, [join(root, "main.ts"), "completion", "fish"], {
    encoding: "utf8",
    maxBuffer: 2 ** 24,
    timeout: completion_ms_max,
  })
  const commands = new Map<string, Set<string>>()
  const of = (path: string) => commands.get(path) ?? commands.set(path, new Set()).get(path)
  for (const line of script.split("\n")) {
    const [, condition] = /^complete -c almanac -n '([^']*(?:'\\''[^']*)*)'/.exec(line) ?? []
    if (condition === undefined) continue
    const seen = [...condition.matchAll(/(?<!not )__fish_seen_subcommand_from ([\w-]+)/g)]
    const path = seen.map(([, word]) => word).join(" ")
    const [, subcommand] = / -f -a '([a-z][\w-]*)' -d /.exec(line) ?? []
    const [, flag] = / -l ([\w-]+)/.exec(line) ?? []
    if (subcommand) of(`${path} ${subcommand}`.trim())
    if (flag) of(path)?.add(flag)
  }
  return commands
}

const scripts: Record<string, string> = JSON.parse(
  readTree().find(({ path }) => path === "package.json")?.text ?? "",
).scripts

/** Global flags of every command. */
const global_flags = new Set(["help", "version", "log-level", "completions", "wizard"])

/** A pipe, a redirection, a comment or a second command ends a command line. */
const ends = /\s(?:[|&;<>]|#|\d?>)|\)"?|$/

const documents = readTree().filter(
  ({ path }) => /\.md$/.test(path) && !/^docs\/decisions\/|^CHANGELOG/.test(path),
)

/** The text after `start` up to the end of its command, in blocks and in code spans. */
const mentions = (start: RegExp): ReadonlyArray<Mention> =>
  documents.flatMap(({ path, text }) => {
    const lines = text.replaceAll(/\\\n\s*/g, "").split("\n")
    let in_block = false
    return lines.flatMap((line) => {
      if (/^\s*```/.test(line)) in_block = !in_block
      const codes = in_block ? [line] : [...line.matchAll(/`([^`]+)`/g)].map(([, code]) => code)
      return codes.flatMap((code = "") =>
        [...code.matchAll(start)].map(({ 0: found, index }) => {
          const [rest = ""] = code.slice(index + found.length).split(ends, 1)
          return { at: path, words: rest.trim().split(/\s+/).filter(Boolean) }
        }),
      )
    })
  })

/** A word that could name a command: not a value, a placeholder or an ellipsis. */
const is_name = /^[a-z][a-z-]*$/

const problemsOf = (commands: Commands, { at, words }: Mention): ReadonlyArray<string> => {
  const line = `${at}: almanac ${words.join(" ")}`
  let path = ""
  for (const word of words) {
    const next = `${path} ${word}`.trim()
    if (!commands.has(next)) break
    path = next
  }
  const [after = ""] = words.slice(path === "" ? 0 : path.split(" ").length)
  const has_subcommands = [...commands.keys()].some((key) => key.startsWith(`${path} `.trimStart()))
  const unknown = is_name.test(after) && has_subcommands && path !== "cluster"
  if (unknown) return [`${line}: no command ${after}`]
  return words
    .map((word) => /^--([a-z][\w-]*)/.exec(word)?.[1])
    .filter((flag) => flag !== undefined)
    .filter((flag) => !commands.get(path)?.has(flag) && !global_flags.has(flag))
    .map((flag) => `${line}: no flag --${flag}`)
}

describe("the documents' commands", () => {
  const commands = readCommands()

  it("exist, with their flags", () => {
    const found = mentions(/(?:^|[(;&|]|\w=\S* |-- )\s*(?:\.\/)?almanac (?!ready)(?=[a-z-])/g)
    expect(found.length).toBeGreaterThan(100)
    expect(found.flatMap((mention) => problemsOf(commands, mention))).toEqual([])
  })

  it("are npm scripts that package.json has", () => {
    const found = mentions(/(?:^|[\s(;])npm (?=run [a-z]|start|test)/g)
    const names = found.map(({ at, words: [first, second] }) => ({
      at,
      name: first === "run" ? (second ?? "") : (first ?? ""),
    }))
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter(({ name }) => !(name in scripts))).toEqual([])
  })

  it("are found missing if a document is wrong", () => {
    const wrong = ["audit lst", "blobs put --no-such", "frobnicate"]
    const problems = wrong.map((line) =>
      problemsOf(commands, { at: "a.md", words: line.split(" ") }),
    )
    expect(problems.map(({ length }) => length)).toEqual([1, 1, 1])
  })
})
