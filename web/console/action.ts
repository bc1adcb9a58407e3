/** Buttons that change something. Each asks for confirmation and shows the server's error. */
import { announce } from "../announcement.ts"
import { h } from "../element.ts"
import { post } from "./client.ts"

export interface Action {
  /** Label of the button, such as Cancel. */
  readonly verb: string
  /** The resource that the button acts on. */
  readonly object: string
  /** The effect of the action, in one or two sentences. */
  readonly explanation: string
  /** Path of the POST request. */
  readonly path: string
  /** Called after the server accepted the request. */
  readonly onDone: () => void
}

const key_bytes = 16

/** A random key. `crypto.randomUUID` is missing on pages from another machine without TLS. */
const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(key_bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")

/** Asks for confirmation in a dialog, which survives a redraw of the view below. */
const openConfirmation = ({ verb, object, explanation, path, onDone }: Action) => {
  const key = newKey()
  const closed = new AbortController()
  const error_line = h("p", { class: "failure", role: "alert" })
  const confirm_button = h(
    "button",
    { type: "button", class: "primary" },
    `Yes, ${verb.toLowerCase()}`,
  )
  const cancel_button = h("button", { type: "button" }, "Back")
  const dialog = h(
    "dialog",
    { class: "confirm", "aria-labelledby": "confirm", "aria-describedby": "confirm-what" },
    h("h2", { id: "confirm" }, `${verb} ${object}?`),
    h("p", { id: "confirm-what" }, explanation),
    error_line,
    h("div", { class: "choices" }, confirm_button, cancel_button),
  )
  /** Disables both buttons until the response arrives, because the request cannot be undone. */
  const setSending = (is_sending: boolean) => {
    confirm_button.disabled = is_sending
    cancel_button.disabled = is_sending
  }
  confirm_button.onclick = async () => {
    setSending(true)
    error_line.textContent = ""
    const result = await post(path, key)
    setSending(false)
    if (result.kind === "problem") {
      const { status, title, text } = result.problem
      error_line.textContent = `${title}${status > 0 ? ` (${status})` : ""}. ${text}`
      confirm_button.focus()
      return
    }
    dialog.close()
    announce(`${verb} ${object}: accepted.`)
    onDone()
  }
  cancel_button.onclick = () => dialog.close()
  dialog.addEventListener("cancel", (event) => {
    if (confirm_button.disabled) event.preventDefault()
  })
  dialog.addEventListener("close", () => {
    closed.abort()
    dialog.remove()
  })
  // Close it when the view changes.
  addEventListener("hashchange", () => dialog.close(), { signal: closed.signal })
  document.body.append(dialog)
  dialog.showModal()
  cancel_button.focus()
}

/** Closes the confirmation dialog, if one is open. */
export const closeConfirmation = (): void =>
  document.querySelector<HTMLDialogElement>("dialog.confirm")?.close()

/** The button of an action. */
export const actionButton = (action: Action): HTMLElement =>
  h(
    "button",
    {
      type: "button",
      class: "action",
      "data-key": action.path,
      "aria-label": `${action.verb} ${action.object}`,
      onclick: () => openConfirmation(action),
    },
    action.verb,
  )
