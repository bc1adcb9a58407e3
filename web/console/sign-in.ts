/** The sign-in form for the operator's token, shown once per tab. */
import { copyableCommand } from "../command.ts"
import { h } from "../element.ts"
import { token_command } from "./parts.ts"

const development_command = `node -p 'require("./data/dev-credentials.json").admin.token'`

const onSubmit = (onToken: (token: string) => void) => (event: Event) => {
  event.preventDefault()
  const form = event.target
  if (!(form instanceof HTMLFormElement)) return
  const token = new FormData(form).get("token")
  if (typeof token === "string" && token.trim() !== "") onToken(token.trim())
}

/** `reason`: why the previous token was rejected. */
export const signInForm = (reason: string, onToken: (token: string) => void): HTMLElement =>
  h(
    "section",
    { class: "sign-in", "aria-labelledby": "sign-in" },
    h("h2", { id: "sign-in" }, "Whose console is this?"),
    h(
      "p",
      {},
      "Enter an operator's token. It stays in this tab, goes to this server only, and is gone ",
      "when the tab is closed.",
    ),
    h(
      "form",
      { class: "token", onsubmit: onSubmit(onToken) },
      h("label", { for: "token" }, "Token"),
      h("input", {
        id: "token",
        name: "token",
        type: "password",
        autocomplete: "off",
        autofocus: true,
        ...(reason !== "" && { "aria-invalid": "true", "aria-describedby": "sign-in-error" }),
      }),
      h("button", { type: "submit", class: "primary" }, "Open the console"),
    ),
    h("p", { id: "sign-in-error", class: "failure", role: "alert" }, reason),
    h("h3", {}, "One that sees every view, from the project's folder"),
    copyableCommand(token_command),
    h("h3", {}, "The development operator's, which sees all but the ring of blob nodes"),
    copyableCommand(development_command),
  )
