import { Redacted } from "effect"
import { type Group, isSetting } from "#schemas/setting.ts"
import { type Settings, settings } from "#schemas/settings.ts"

const defaults = (group: Group): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(group).map(([name, node]) => {
      if (!isSetting(node)) return [name, defaults(node)]
      return [name, node.form === "secret" ? Redacted.make(node.initial) : node.initial]
    }),
  )

type Sections = Omit<Settings, "services" | "roles">

/** The default settings with changes to some sections. */
export const given = (
  change: {
    readonly [Section in keyof Sections]?: Partial<Sections[Section]>
  },
): Settings => {
  // It contains every name of `settings`, with its default.
  const all = defaults(settings) as unknown as Settings
  const changed = Object.entries(change).map(([section, values]: [string, object]) => {
    const own: object = all[section as keyof Sections]
    return [section, { ...own, ...values }]
  })
  return { ...all, ...Object.fromEntries(changed) }
}
