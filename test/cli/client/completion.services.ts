/** Completion in real zsh and fish shells; `verbs.test.ts` covers bash. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterAll, beforeAll } from "vitest"
import { findTree, treeEnvironment, trees } from "../../../launcher/trees.mjs"
import { describeAbsent } from "../../world/programs/absent.ts"
import { program } from "../../world/server/server.ts"

const root = join(import.meta.dirname, "../../..")
const tree = findTree("shells")

/** Maximum time of a shell in milliseconds: it reads a script of 700 KB. */
const shell_ms_max = 60_000

/** The input before the Tab key, and the completed line. */
const completed = [
  ["almanac targ", "almanac targets"],
  ["almanac jobs wa", "almanac jobs watch"],
  ["almanac backups create --sh", "almanac backups create --share-id"],
] as const
const typed = completed.map(([words]) => words)

/**
 * Types into an interactive zsh in a terminal of its own, and prints the resulting line.
 *
 * Arguments: the tree, the shell, the completion script, and the input.
 */
const zsh_driver = String.raw`
tree=$1 shell=$2 script=$3; shift 3
setup="module_path=($tree/usr/lib/*-linux-gnu/zsh/*(N/) \$module_path)"
setup+="; fpath=($tree/usr/share/zsh/functions/**/*(N/) \$fpath)"
eval $setup
zmodload zsh/zpty || exit 1
zpty shell "$shell -f -i"
show='show() { print -r -- "<$BUFFER>"; BUFFER= }; zle -N show; bindkey "^X" show'
zpty -w shell "$setup; autoload -Uz compinit; compinit -u -D; source $script; $show
compdef _almanac almanac; bindkey '^I' complete-word; PROMPT=; print RE''ADY"
zpty -r -m shell line '*READY*' || exit 1
for words; do
  zpty -w -n shell "$words"$'\t\x18'
  zpty -r -m shell line '*<*>*' && print -r -- ${"$"}{${"$"}{line##*<}%%>*}
done
zpty -d shell
`

if (tree === undefined) {
  describeAbsent("the completion of zsh and fish", "zsh and fish", trees.shells.install_command)
} else
  describe("completion", () => {
    const folder = mkdtempSync(join(tmpdir(), "almanac-shells-"))
    const env = { ...process.env, ...treeEnvironment(tree), HOME: folder, TERM: "xterm" }
    const shell = (name: "bin/zsh" | "usr/bin/fish", args: ReadonlyArray<string>) => {
      const command = join(tree, name)
      const { stdout, stderr } = spawnSync(command, args, {
        env,
        cwd: folder,
        encoding: "utf8",
        timeout: shell_ms_max,
      })
      assert.equal(stderr, "")
      return stdout
    }
    const script = (name: string) => join(folder, `almanac.${name}`)

    beforeAll(() => {
      for (const name of ["zsh", "fish"]) {
        const made = spawnSync(process.execPath, [program, "completion", name], {
          cwd: root,
          encoding: "utf8",
          maxBuffer: 2 ** 24,
        })
        assert.equal(made.status, 0, made.stderr)
        writeFileSync(script(name), made.stdout)
      }
      writeFileSync(script("driver"), zsh_driver)
    })
    afterAll(() => rmSync(folder, { recursive: true }))

    it("of zsh offers nouns, commands and flags", () => {
      const given = [tree, join(tree, "bin/zsh"), script("zsh"), ...typed]
      const lines = shell("bin/zsh", ["-f", script("driver"), ...given])
        .trim()
        .split("\n")
      assert.deepEqual(
        lines.map((line) => line.trim()),
        completed.map(([, whole]) => whole),
      )
    })

    it("of fish offers nouns, commands and flags", () => {
      const functions = join(tree, "usr/share/fish/functions")
      for (const [words, whole] of completed) {
        const command = `set fish_function_path '${functions}'
          source '${script("fish")}'; complete -C '${words}'`
        const [first = ""] = shell("usr/bin/fish", ["--no-config", "-c", command]).split("\t")
        assert.equal([...words.split(" ").slice(0, -1), first].join(" "), whole)
      }
    })
  })
