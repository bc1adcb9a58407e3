/** Formats the help of a command and the errors of a command line. Pages fit the terminal. */
import { Console, type Layer, Option } from "effect"
import { type CliError, CliOutput, type HelpDoc } from "effect/cli"

/** Width without a terminal, and the widest page that is easy to read, in characters. */
const columns_default = 100
const columns_max = 120

/** Width of the left column of a list: a longer name has its description on the next line. */
const left_chars_max = 34

const { displayWidth: widthOf } = CliOutput

const indent = "  "
const gap = "  "

/** Wraps text at spaces; a longer word keeps its own line. */
export const wrapped = (text: string, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= columns) {
      lines[lines.length - 1] = `${last} ${word}`
    } else lines.push(word)
  }
  return lines
}

interface Row {
  readonly left: string
  readonly right: string
}

const rowLines = (rows: ReadonlyArray<Row>, columns: number) => {
  const width = Math.min(left_chars_max, Math.max(0, ...rows.map(({ left }) => widthOf(left))))
  const start = indent + " ".repeat(width) + gap
  return rows.flatMap(({ left, right }) => {
    const [first = "", ...rest] = wrapped(right, columns - start.length)
    const head = widthOf(left) > width ? [indent + left, start + first] : []
    const lines = head.length > 0 ? head : [`${indent}${left.padEnd(width)}${gap}${first}`]
    return [...lines, ...rest.map((line) => start + line)].map((line) => line.trimEnd())
  })
}

const flagRow = ({ name, aliases, type, description }: HelpDoc.FlagDoc): Row => {
  const value = type === "boolean" ? "" : ` ${type.replace(/^<|>$/g, "")}`
  const left = [...aliases.toReversed(), `--${name}`].join(", ") + value
  return { left, right: Option.getOrElse(description, () => "") }
}

const argumentRow = ({ name, variadic, required, description }: HelpDoc.ArgDoc): Row => ({
  left: `${name}${variadic ? "..." : ""}`,
  right: Option.getOrElse(description, () => (required ? "" : "Optional")),
})

const section = (title: string, lines: ReadonlyArray<string>) =>
  lines.length === 0 ? [] : [title, ...lines, ""]

type Commands = NonNullable<HelpDoc.HelpDoc["subcommands"]>

const commandSections = (groups: Commands, columns: number) =>
  groups.flatMap(({ group, commands }) => {
    const rows = commands.map(({ name, alias, shortDescription, description }) => ({
      left: alias === undefined ? name : `${name}, ${alias}`,
      right: shortDescription ?? description,
    }))
    return section(group ?? "COMMANDS", rowLines(rows, columns))
  })

/** Whether this page documents the flags that every command has. */
const isRoot = ({ commandPath = [] }: HelpDoc.HelpDoc) => commandPath.length <= 1

/** The help of a command: usage, description, examples, arguments, flags and commands. */
export const helpText = (doc: HelpDoc.HelpDoc, columns: number) => {
  const { description, usage, args = [], flags, inheritedFlags = [], globalFlags = [] } = doc
  const examples = (doc.examples ?? []).flatMap(({ command, description }) => [
    ...(description === undefined ? [] : wrapped(`# ${description}`, columns - indent.length)),
    command,
  ])
  const rowsOf = (all: ReadonlyArray<HelpDoc.FlagDoc>) => rowLines(all.map(flagRow), columns)
  return [
    ...wrapped(description, columns),
    "",
    ...section("USAGE", [indent + usage.replace("<subcommand>", "<command>")]),
    ...section("ARGUMENTS", rowLines(args.map(argumentRow), columns)),
    ...section("FLAGS", rowsOf(flags)),
    ...commandSections(doc.subcommands ?? [], columns),
    ...section("INHERITED FLAGS", isRoot(doc) ? [] : rowsOf(inheritedFlags)),
    ...section("GLOBAL FLAGS", isRoot(doc) ? rowsOf(globalFlags) : []),
    ...section(
      "EXAMPLES",
      examples.map((line) => indent + line),
    ),
    ...(isRoot(doc) ? ["Help of one command: almanac help <command>"] : []),
  ]
    .join("\n")
    .trimEnd()
}

const quoted = (text: string) => `'${text.replaceAll(/\p{Cc}/gu, "?")}'`

const suggestion = ([nearest]: ReadonlyArray<string>) =>
  nearest === undefined ? "" : ` Did you mean ${quoted(nearest)}?`

/** One error of the command line as one sentence; `path` is the command it belongs to. */
const errorText = (error: CliError.NonShowHelpErrors, path: string): string => {
  switch (error._tag) {
    case "UnknownSubcommand": {
      const full = (name: string) => [...path.split(" ").slice(1), name].join(" ")
      const near = suggestion(error.suggestions.map(full))
      return `unknown command ${quoted(full(error.subcommand))}.${near}`
    }
    case "UnrecognizedOption":
      return `unknown flag ${quoted(error.option)}.${suggestion(error.suggestions)}`
    case "MissingOption":
      return `--${error.option} is required.`
    case "MissingArgument":
      return `the argument <${error.argument}> is required.`
    case "UnexpectedArgument": {
      const words = error.arguments.map(quoted).join(", ")
      return `unexpected ${error.arguments.length === 1 ? "argument" : "arguments"} ${words}.`
    }
    case "InvalidValue": {
      const name = error.kind === "flag" ? `--${error.option}` : `<${error.option}>`
      const expected = error.expected.replace(/^Expected:? /, "")
      const value = error.value === "" ? "missing value" : `invalid value ${quoted(error.value)}`
      return `${value} for ${name}: expected ${expected.replaceAll(/[\p{Cc}--\n]/gv, "?")}`
    }
    case "DuplicateOption":
    case "UserError":
    case "ValidationError":
      return error.message.replaceAll(/[\p{Cc}--\n]/gv, "?")
  }
}

/** The error in a command line, its usage, and how to get the whole help. */
export const usageErrorText = (
  errors: ReadonlyArray<CliError.NonShowHelpErrors>,
  { usage, commandPath = ["almanac"], subcommands = [] }: HelpDoc.HelpDoc,
) => {
  const path = commandPath.join(" ")
  // The rest of a command line means nothing after an unknown command.
  const unknown = errors.filter(({ _tag }) => _tag === "UnknownSubcommand")
  const shown = unknown.length > 0 ? unknown : errors
  const lines = shown.map((error) => `${path}: ${errorText(error, path)}`)
  const is_listed =
    unknown.length > 0 && commandPath.length > 1 && !/Did you mean/.test(lines[0] ?? "")
  const names = subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))
  return [
    ...lines,
    ...(is_listed ? [`Commands: ${names.join(", ")}`] : []),
    `Usage: ${usage.replace("<subcommand>", "<command>")}`,
    `Help: ${["almanac help", ...commandPath.slice(1)].join(" ")}`,
  ].join("\n")
}

const columnsOf = ({ isTTY, columns }: NodeJS.WriteStream) =>
  Math.min(columns_max, isTTY === true && columns > 0 ? columns : columns_default)

/** Requested help goes to standard output, and errors of the command line to standard error. */
export const presenter = CliOutput.layerPresenter({
  present: (event) => {
    switch (event._tag) {
      case "Help":
        return Console.log(helpText(event.helpDoc, columnsOf(process.stdout)))
      case "InvalidInvocation":
        return Console.error(usageErrorText(event.errors, event.helpDoc))
      case "Version":
        return Console.log(`${event.name} ${event.version}`)
    }
  },
}) satisfies Layer.Layer<never>
