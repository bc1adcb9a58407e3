/** What a running process takes over when its settings are read again (SIGHUP). */
import { Equal } from "effect"
import { type Group, isSetting } from "#schemas/setting.ts"
import { type Settings, settings } from "#schemas/settings.ts"

export interface Reload {
  /** The settings to go on with: the running ones, with the reloadable ones that changed. */
  readonly settings: Settings
  /** Dotted names that changed and apply now. */
  readonly applied: ReadonlyArray<string>
  /** Dotted names that changed and wait for a restart. */
  readonly needs_restart: ReadonlyArray<string>
}

/** Answers what changes between two readings; values are compared and never shown. */
export const reload = (running: Settings, read: Settings): Reload => {
  const applied: Array<string> = []
  const needs_restart: Array<string> = []
  const merge = (group: Group, from: Section, to: Section, prefix: string): Section =>
    Object.fromEntries(
      Object.entries(group).map(([name, node]) => {
        const [before, after] = [from[name], to[name]]
        // The values of a section that holds sections are sections, by the type of Values.
        if (!isSetting(node)) {
          return [name, merge(node, before as Section, after as Section, `${prefix}${name}.`)]
        }
        if (Equal.equals(before, after)) return [name, before]
        const changed = node.reloadable ? applied : needs_restart
        changed.push(prefix + name)
        return [name, node.reloadable ? after : before]
      }),
    )
  // Every name of `settings` is carried over with a value of its own type.
  const merged = merge(settings, running, read, "") as unknown as Settings
  return { settings: merged, applied, needs_restart }
}

type Section = Readonly<Record<string, unknown>>
