/** Help, version and errors of the command line. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Option } from "effect"
import { CliError } from "effect/cli"
import { helpText, usageErrorText, wrapped } from "#cli/help.ts"
import { version } from "#server/program.ts"

const root = join(import.meta.dirname, "../..")

const almanac = (...words: ReadonlyArray<string>) => {
  const args = ["main.ts", ...words]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    // Nothing listens there: what these commands print needs no server.
    env: { PATH: process.env.PATH, ALMANAC_URL: "http://127.0.0.1:1" },
    encoding: "utf8",
  })
  return { status, stdout, lines: stderr.trimEnd().split("\n") }
}

describe("the command line", { timeout: 60_000 }, () => {
  it("reports a typo in a command on standard error, the suggestion first", () => {
    const { status, stdout, lines } = almanac("job", "list", "--state", "error")
    assert.equal(status, 2)
    assert.equal(stdout, "")
    assert.deepEqual(lines, [
      "almanac: unknown command 'job'. Did you mean 'jobs'?",
      "Usage: almanac <command> [flags]",
      "Help: almanac help",
    ])
  })

  it("reports a typo in a flag, and a missing flag", () => {
    const typo = almanac("jobs", "list", "--stat", "error")
    assert.equal(typo.status, 2)
    assert.equal(typo.stdout, "")
    assert.deepEqual(typo.lines, [
      "almanac jobs list: unknown flag '--stat'. Did you mean '--state'?",
      "Usage: almanac jobs list [flags]",
      "Help: almanac help jobs list",
    ])
    const missing = almanac("catalog", "register")
    assert.equal(missing.status, 2)
    assert.equal(missing.lines[0], "almanac catalog register: --url is required.")
  })

  it("lists missing flags of a request without sending one", () => {
    const { status, lines } = almanac("targets", "create")
    assert.equal(status, 2)
    assert.match(lines[0] ?? "", /^almanac: Missing required flags: --name, --endpoint, --bucket/)
  })

  it("prints the version", () => {
    for (const word of ["version", "--version"]) {
      const { status, stdout } = almanac(word)
      assert.deepEqual([status, stdout], [0, `almanac ${version}\n`])
    }
  })

  it("shows the help of a command by its name", () => {
    const { status, stdout } = almanac("help", "jobs", "list")
    assert.equal(status, 0)
    assert.include(stdout, "USAGE\n  almanac jobs list [flags]")
    assert.equal(stdout, almanac("jobs", "ls", "--help").stdout)
    assert.equal(almanac("help").stdout, almanac("--help").stdout)
    assert.include(almanac("help").stdout, "almanac help <command>")
    assert.match(almanac("help", "targets", "show").stdout, /^ {2}id +ID or name of the target$/m)
  })

  it("never runs a command that it explains", () => {
    const unknown = almanac("help", "jobs", "nonsense")
    assert.equal(unknown.status, 2)
    assert.equal(unknown.lines[0], "almanac jobs: unknown command 'jobs nonsense'.")
    assert.match(unknown.lines[1] ?? "", /^Commands: list, show, /)
    assert.include(almanac("help", "blobs", "put", "x").stdout, "almanac blobs put")
  })
})

describe("a page of help", () => {
  const flag = (name: string, description: string) => ({
    name,
    aliases: [],
    type: "string",
    description: Option.some(description),
    required: false,
  })
  const words = "Maximum number of rows that the command prints before it ends ".repeat(3).trim()

  it("fits the width, and aligns what it wraps", () => {
    const usage = "almanac jobs list [flags]"
    const flags = [flag("limit", words), flag("a-name-that-is-longer-than-the-left-column", words)]
    for (let columns = 60; columns <= 120; columns += 7) {
      const lines = helpText(
        { description: words, usage, flags, annotations: Context.empty() },
        columns,
      ).split("\n")
      for (const line of lines) assert.isAtMost(line.length, columns, line)
      assert.equal(lines.join(" ").match(/Maximum +number/g)?.length, 9)
    }
    assert.deepEqual(wrapped("a bb ccc", 4), ["a bb", "ccc"])
  })

  it("reports each error that is no consequence of another", () => {
    const doc = { description: "", usage: "almanac x", flags: [], annotations: Context.empty() }
    const errors = [
      new CliError.MissingOption({ option: "to" }),
      new CliError.InvalidValue({
        option: "n",
        value: "a\u001b",
        expected: "1 to 9",
        kind: "flag",
      }),
      new CliError.UnexpectedArgument({ arguments: ["b"] }),
    ]
    assert.deepEqual(
      usageErrorText(errors, { ...doc, commandPath: ["almanac", "x"] }).split("\n"),
      [
        "almanac x: --to is required.",
        "almanac x: invalid value 'a?' for --n: expected 1 to 9",
        "almanac x: unexpected argument 'b'.",
        "Usage: almanac x",
        "Help: almanac help x",
      ],
    )
  })
})
