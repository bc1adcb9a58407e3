/** Generates docs/configuration.md from the settings. */
import { type Group, isSetting, type Setting, settingsOf } from "#schemas/setting.ts"
import { settings, variableOf } from "#schemas/settings.ts"

/** The whole page; a test compares the file with it. */
export const settingsPage = () =>
  [introduction, ...sectionsOf(settings, "").map(section), reloadables()].join("\n")

const introduction = `# Configuration

This page is made from \`schemas/settings.ts\`; a test holds it equal
(\`npx vitest run --project test test/schemas/settings.test.ts -u\` rewrites it).

Almanac starts without any configuration. Each source overrides the one before it:

1. the defaults below;
2. a TOML file: \`--config FILE\`, or \`ALMANAC_CONFIG\`;
3. environment variables: \`ALMANAC_<SECTION>__<NAME>\`, for example \`ALMANAC_API__BIND_PORT=0\`;
4. flags: \`--set section.name=value\`, as often as needed.

In a variable or flag a list of texts is written with commas between them or as a JSON list, a list
of tables as a JSON list of objects, and a yes or no as \`true\` or \`false\`. Relative paths start
at the folder in which Almanac is started. An empty text means "not set".

A name that does not exist, a value of another type and one out of range stop the start with one
line that says which, and where it was given.

A secret is given in the file, in its variable, or in a file named by \`<name>_file\`, never by
\`--set\`, since other users of a machine can read the arguments of a process. It is never printed.
`

interface Section {
  readonly path: string
  readonly settings: ReadonlyArray<readonly [string, Setting]>
}

const sectionsOf = (group: Group, path: string): ReadonlyArray<Section> => {
  const own = Object.entries(group).flatMap(([name, node]) =>
    isSetting(node) ? [[name, node] as const] : [],
  )
  const inner = Object.entries(group).flatMap(([name, node]) =>
    isSetting(node) ? [] : sectionsOf(node, path === "" ? name : `${path}.${name}`),
  )
  return [{ path, settings: own }, ...inner]
}

const section = ({ path, settings }: Section) => {
  const nested = settings.filter(([, setting]) => setting.form === "tables")
  const name = (own: string) => (path === "" ? own : `${path}.${own}`)
  return [
    path === "" ? "## Before any section\n" : `## [${path}]\n`,
    table(settings, ([own]) => variableOf(name(own))),
    ...nested.map(([own, { columns }]) => `### [[${name(own)}]]\n\n${table(settingsOf(columns))}`),
  ].join("\n")
}

const table = (
  rows: ReadonlyArray<readonly [string, Setting]>,
  variable?: (row: readonly [string, Setting]) => string,
) =>
  [
    "| name | type | default | range | meaning | reloadable | source |",
    "|---|---|---|---|---|---|---|",
    ...rows.map((row) => {
      const [name, { type, initial, range, meaning, reloadable, source }] = row
      const names = variable === undefined ? `\`${name}\`` : `\`${name}\`<br>\`${variable(row)}\``
      const cells = [names, type, `\`${JSON.stringify(initial)}\``, range, meaning]
      return `| ${[...cells, reloadable ? "yes" : "no", source].join(" | ")} |`
    }),
    "",
  ].join("\n")

const reloadables = () =>
  [
    "## What SIGHUP reloads\n",
    "On SIGHUP every source is read again. These settings apply at once; of any other that changed",
    "the log says that it needs a restart. A reading with a mistake changes nothing.\n",
    ...settingsOf(settings).flatMap(([path, { reloadable }]) =>
      reloadable ? [`- \`${path}\``] : [],
    ),
    "",
  ].join("\n")
