/** Buttons that change something. Each asks for confirmation and shows the server's error. */
import { announce } from "../announcement.ts"
import { h } from "../element.ts"
import { post } from "./ask.ts"

export interface Action {
  /** Label of the button: a verb. */
  readonly verb: string
  /** Object of the verb. */
  readonly object: string
  /** What will happen, in a sentence or two. */
  readonly explanation: string
  /** Path of the POST request. */
  readonly path: string
  /** Called after the server accepted the request. */
  readonly onDone: () => void
}

const key_bytes = 16

/** A random key. `crypto.randomUUID` is missing on pages without TLS from another machine. */
const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(key_bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")

/** Asks for confirmation in a dialog, which survives a redraw of the view below. */
const confirmed = ({ verb: word, object: what, explanation: question, path, onDone: done }: Action) => {
  const key = newKey()
  const left = new AbortController()
  const said = h("p", { class: "failure", role: "alert" })
  const yes = h("button", { type: "button", class: "primary" }, `Yes, ${word.toLowerCase()}`)
  const no = h("button", { type: "button" }, "Leave it as it is")
  const dialog = h(
    "dialog",
    { class: "confirm", "aria-labelledby": "confirm", "aria-describedby": "confirm-what" },
    h("h2", { id: "confirm" }, `${word} ${what}?`),
    h("p", { id: "confirm-what" }, question),
    said,
    h("div", { class: "choices" }, yes, no),
  )
  /** Disables both buttons until the response arrives, because the request cannot be taken back. */
  const sending = (is_sent: boolean) => {
    yes.disabled = is_sent
    no.disabled = is_sent
  }
  yes.onclick = async () => {
    sending(true)
    said.textContent = ""
    const answer = await post(path, key)
    sending(false)
    if (answer.kind === "problem") {
      const { status, title, text } = answer.problem
      said.textContent = `${title}${status > 0 ? ` (${status})` : ""}. ${text}`
      yes.focus()
      return
    }
    dialog.close()
    announce(`${word} ${what}: taken.`)
    done()
  }
  no.onclick = () => dialog.close()
  dialog.addEventListener("cancel", (event) => {
    if (yes.disabled) event.preventDefault()
  })
  dialog.addEventListener("close", () => {
    left.abort()
    dialog.remove()
  })
  // Close it when the view changes.
  addEventListener("hashchange", () => dialog.close(), { signal: left.signal })
  document.body.append(dialog)
  dialog.showModal()
  no.focus()
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
      onclick: () => confirmed(action),
    },
    action.verb,
  )
