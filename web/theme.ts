/** Light or dark: the system's choice, or the reader's own, which the browser keeps. */
import { h } from "./element.ts"

const kept_as = "almanac-theme"
const themes = ["auto", "light", "dark"] as const
type Theme = (typeof themes)[number]

const words: Readonly<Record<Theme, string>> = { auto: "Auto", light: "Light", dark: "Dark" }

/** Storage may be forbidden; then the choice lasts as long as the page. */
let current: Theme = "auto"
try {
  const kept = localStorage.getItem(kept_as)
  current = themes.find((theme) => theme === kept) ?? "auto"
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
    if (theme === "auto") localStorage.removeItem(kept_as)
    else localStorage.setItem(kept_as, theme)
  } catch {
    // Nothing is kept then, which the reader sees at the next visit.
  }
  apply()
}

/** Calls back when colours change: what is drawn on a canvas does not follow by itself. */
export const onTheme = (listener: () => void): void => {
  listeners.add(listener)
}

apply()
for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", apply)
}

/** The switch, for a page's header. */
export const themeSwitch = (): HTMLElement =>
  h(
    "fieldset",
    { class: "theme" },
    h("legend", { class: "unseen" }, "Colours"),
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
        h("span", {}, words[theme]),
      ),
    ),
  )
