/** Reloading settings in a running process (SIGHUP). */
import { Equal } from "effect"
import { type Group, isSetting } from "#schemas/setting.ts"
import { type Settings, settings } from "#schemas/settings.ts"

export interface Reload {
  /** The settings in effect: the previous ones with all reloadable changes. */
  readonly settings: Settings
  /** Dotted names of changes that apply now. */
  readonly applied: ReadonlyArray<string>
  /** Dotted names of changes that need a restart. */
  readonly needs_restart: ReadonlyArray<string>
}

/** Merges reloaded settings into the running ones. Values are compared, but never printed. */
export const reload = (running: Settings, read: Settings): Reload => {
  const applied: Array<string> = []
  const needs_restart: Array<string> = []
  const merge = (group: Group, from: Section, to: Section, prefix: string): Section =>
    Object.fromEntries(
      Object.entries(group).map(([name, node]) => {
        const [before, after] = [from[name], to[name]]
        // By the type of Values, the values of a group are a section.
        if (!isSetting(node)) {
          return [name, merge(node, before as Section, after as Section, `${prefix}${name}.`)]
        }
        if (Equal.equals(before, after)) return [name, before]
        const changed = node.reloadable ? applied : needs_restart
        changed.push(prefix + name)
        return [name, node.reloadable ? after : before]
      }),
    )
  // Every name of `settings` keeps a value of its own type.
  const merged = merge(settings, running, read, "") as unknown as Settings
  return { settings: merged, applied, needs_restart }
}

type Section = Readonly<Record<string, unknown>>
