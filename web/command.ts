/** Code with a copy button. */
import { announce } from "./announcement.ts"
import { h } from "./element.ts"

const copied_ms = 2000

/** Copies the text. Falls back to `execCommand`: without TLS there is no Clipboard API. */
const copy = async (text: string, code: Element): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const range = document.createRange()
    range.selectNodeContents(code)
    getSelection()?.removeAllRanges()
    getSelection()?.addRange(range)
    return document.execCommand("copy")
  }
}

const onCopy = (text: string) => (event: Event) => {
  const button = event.currentTarget
  if (!(button instanceof HTMLButtonElement)) return
  const code = button.closest(".command, .code")?.querySelector("code")
  if (!code) return
  void copy(text, code).then((done) => {
    button.textContent = done ? "Copied" : "Press Ctrl+C"
    announce(done ? "Copied" : "The text is selected. Press Ctrl+C to copy it.")
    setTimeout(() => {
      button.textContent = "Copy"
    }, copied_ms)
  })
}

/** Copies the text of the code element next to it. */
export const copyButton = (text: string, label: string): HTMLElement =>
  h("button", { type: "button", "aria-label": `Copy: ${label}`, onclick: onCopy(text) }, "Copy")

/** The command with its copy button. */
export const copyableCommand = (command: string): HTMLElement =>
  h("div", { class: "command" }, h("code", {}, command), copyButton(command, command))
