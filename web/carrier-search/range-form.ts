/** The form: first and last number, validation errors, and the search and cancel buttons. */
import { h, morphChildren } from "../element.ts"
import { count } from "../format.ts"
import { type Field, type FieldError, isRange, type Range, readRange, total } from "./range.ts"

export interface RangeForm {
  readonly element: HTMLElement
  /** Fills in both fields and clears the error. */
  readonly fill: (texts: Readonly<Record<Field, string>>) => void
  /** Reads the fields; on invalid input shows the error and moves the focus there. */
  readonly read: () => Range | undefined
  /** Shows why the server rejected the search. */
  readonly showError: (text: string) => void
  readonly setRunning: (is_running: boolean) => void
}

const field = (name: Field, label: string, example: string) => {
  const input = h("input", {
    id: name,
    name,
    type: "text",
    inputmode: "numeric",
    autocomplete: "off",
    spellcheck: "false",
    maxlength: 24,
    placeholder: example,
    "aria-describedby": "mistake",
  })
  const element = h("div", { class: "field" }, h("label", { for: name }, label), input)
  return { input, element }
}

const countText = (start: string, end: string) => {
  if (start.trim() === "" || end.trim() === "") return ""
  const read = readRange(start, end)
  if (!isRange(read)) return ""
  return total(read) === 1 ? "1 number" : `${count(total(read))} numbers`
}

/** Calls `onSearch` with a valid range, and `onCancel` during a search. */
export const rangeForm = (onSearch: (range: Range) => void, onCancel: () => void): RangeForm => {
  const start = field("start", "First MC number", "100001")
  const end = field("end", "Last MC number", "100500")
  const count_output = h("output", { class: "counted", for: "start end" })
  const error_line = h("p", { id: "mistake", class: "failure", role: "alert" })
  const submit = h("button", { type: "submit", class: "primary" }, "Search")
  const cancel = h(
    "button",
    { type: "button", class: "cancel", hidden: true, onclick: onCancel },
    "Cancel",
  )
  const inputs = { start: start.input, end: end.input }

  const showCount = () => {
    count_output.textContent = countText(start.input.value, end.input.value)
  }
  const showFieldError = (field_error: FieldError | undefined) => {
    for (const input of [start.input, end.input]) input.removeAttribute("aria-invalid")
    error_line.textContent = field_error?.text ?? ""
    if (field_error) inputs[field_error.field].setAttribute("aria-invalid", "true")
  }
  const read = () => {
    const range = readRange(start.input.value, end.input.value)
    if (isRange(range)) {
      showFieldError(undefined)
      return range
    }
    showFieldError(range)
    inputs[range.field].focus()
    return undefined
  }
  const element = h(
    "form",
    {
      class: "range",
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault()
        const range = read()
        if (range) onSearch(range)
      },
      oninput: () => {
        showFieldError(undefined)
        showCount()
      },
    },
    start.element,
    end.element,
    h("div", { class: "buttons" }, submit, cancel),
    count_output,
    error_line,
  )
  return {
    element,
    read,
    fill: (texts) => {
      start.input.value = texts.start
      end.input.value = texts.end
      showFieldError(undefined)
      showCount()
    },
    showError: (text) => morphChildren(error_line, [document.createTextNode(text)]),
    setRunning: (is_running) => {
      const had_focus = document.activeElement === cancel
      cancel.hidden = !is_running
      if (had_focus && !is_running) submit.focus()
    },
  }
}
