/** Buttons that do something: each asks first, and says what the server said of it. */
import { announce } from "../announcement.ts"
import { h } from "../element.ts"
import { act } from "./ask.ts"

export interface Action {
  /** What the button says: a verb. */
  readonly word: string
  /** To what it is done. */
  readonly what: string
  /** What will happen, in a sentence or two. */
  readonly question: string
  /** Where it is posted to. */
  readonly path: string
  /** Called when the server has taken it. */
  readonly done: () => void
}

const key_bytes = 16

/** A fresh key; `randomUUID` is not there where the page came without TLS from another machine. */
const newKey = () =>
  [...crypto.getRandomValues(new Uint8Array(key_bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")

/** Asks in a dialog of its own, which stays when what is below it is drawn anew. */
const confirmed = ({ word, what, question, path, done }: Action) => {
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
  /** What was sent cannot be left as it was: until the answer is there nothing can be chosen. */
  const sending = (is_sent: boolean) => {
    yes.disabled = is_sent
    no.disabled = is_sent
  }
  yes.onclick = async () => {
    sending(true)
    said.textContent = ""
    const answer = await act(path, key)
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
  // It is about what another view does not show.
  addEventListener("hashchange", () => dialog.close(), { signal: left.signal })
  document.body.append(dialog)
  dialog.showModal()
  no.focus()
}

/** Leaves what is asked, since whatever it is about goes. */
export const leaveQuestion = (): void =>
  document.querySelector<HTMLDialogElement>("dialog.confirm")?.close()

/** The button of an action. */
export const actionButton = (action: Action): HTMLElement =>
  h(
    "button",
    {
      type: "button",
      class: "action",
      "data-key": action.path,
      "aria-label": `${action.word} ${action.what}`,
      onclick: () => confirmed(action),
    },
    action.word,
  )
