/** Generates docs/configuration.md from the settings. */
import { type Group, isSetting, type Setting, settingsOf } from "#schemas/setting.ts"
import { settings, variableOf } from "#schemas/settings.ts"

/** The whole page; a test compares the file with it. */
export const settingsPage = () =>
  [introduction, ...sectionsOf(settings, "").map(section), reloadables()].join("\n")

const introduction = `# Configuration

This page is generated from \`schemas/settings.ts\`. A test compares the two; to regenerate it, run
\`npx vitest run --project test test/schemas/settings.test.ts -u\`.

Almanac needs no configuration to start. Settings are read from these sources; each one overrides
those before it:

1. the defaults below;
2. a TOML file: \`--config FILE\`, or \`ALMANAC_CONFIG\`;
3. environment variables: \`ALMANAC_<SECTION>__<NAME>\`, for example \`ALMANAC_API__BIND_PORT=0\`;
4. flags: \`--set section.name=value\`, which can be repeated.

In a variable or flag, write a list of strings separated by commas or as a JSON array, a list of
tables as a JSON array of objects, and a boolean as \`true\` or \`false\`. Relative paths are
resolved against the folder in which Almanac is started. An empty string means "not set".

If a name is unknown or a value has the wrong type or is out of range, Almanac does not start: it
prints one line that names the setting and its source.

Set a secret in the TOML file, in its variable, or in a file named by \`<name>_file\`. \`--set\`
rejects secrets, because other users of the machine can read a process's arguments. Secrets are
never printed.
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
    path === "" ? "## Top-level settings\n" : `## [${path}]\n`,
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
    "## Reload settings with SIGHUP\n",
    "SIGHUP reads all sources again. Changes to the settings below apply immediately. If any",
    "other setting changed, a log line reports that it needs a restart. If a source has an error,",
    "no setting changes.\n",
    ...settingsOf(settings).flatMap(([path, { reloadable }]) =>
      reloadable ? [`- \`${path}\``] : [],
    ),
    "",
  ].join("\n")
