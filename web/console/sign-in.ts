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
    h("h2", { id: "sign-in" }, "Sign in"),
    h(
      "p",
      {},
      "Enter an operator token. It is stored in this tab until you close it, and sent to this ",
      "server only.",
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
      h("button", { type: "submit", class: "primary" }, "Sign in"),
    ),
    h("p", { id: "sign-in-error", class: "failure", role: "alert" }, reason),
    h("h3", {}, "Issue a token that expires after 12 hours"),
    copyableCommand(token_command),
    h("h3", {}, "Or print the development token from data/dev-credentials.json"),
    copyableCommand(development_command),
  )
