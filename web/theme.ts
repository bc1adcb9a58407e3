/** The colour theme: the system's, or the user's choice, which the browser stores. */
import { h } from "./element.ts"

const storage_key = "almanac-theme"
const themes = ["auto", "light", "dark"] as const
type Theme = (typeof themes)[number]

const labels: Readonly<Record<Theme, string>> = { auto: "Auto", light: "Light", dark: "Dark" }

/** The choice lasts until the page is closed if storage is blocked. */
let current: Theme = "auto"
try {
  const stored = localStorage.getItem(storage_key)
  current = themes.find((theme) => theme === stored) ?? "auto"
} catch {
  current = "auto"
}

const listeners = new Set<() => void>()

const apply = () => {
  if (current === "auto") document.documentElement.removeAttribute("data-theme")
  else document.documentElement.setAttribute("data-theme", current)
  for (const listener of listeners) listener()
}

const choose = (theme: Theme) => {
  current = theme
  try {
    if (theme === "auto") localStorage.removeItem(storage_key)
    else localStorage.setItem(storage_key, theme)
  } catch {
    // Storage is blocked: the choice lasts until the page is closed.
  }
  apply()
}

/** Calls back when colours change, because a canvas must be redrawn. */
export const onTheme = (listener: () => void): void => {
  listeners.add(listener)
}

apply()
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", apply)
}

/** The theme switch in the header. */
export const themeSwitch = (): HTMLElement =>
  h(
    "fieldset",
    { class: "theme" },
    h("legend", { class: "visually-hidden" }, "Colours"),
    themes.map((theme) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "theme",
          value: theme,
          checked: theme === current,
          onchange: () => choose(theme),
        }),
        h("span", {}, labels[theme]),
      ),
    ),
  )
