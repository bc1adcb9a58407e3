/** The form: first and last number, validation errors, and the search and cancel buttons. */
import { h, morphChildren } from "../element.ts"
import { count } from "../wording.ts"
import { type Field, isRange, type FieldError, type Range, readRange, total } from "./range.ts"

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

const countWords = (start: string, end: string) => {
  if (start.trim() === "" || end.trim() === "") return ""
  const read = readRange(start, end)
  if (!isRange(read)) return ""
  return total(read) === 1 ? "1 number" : `${count(total(read))} numbers`
}

/** Calls `onSearch` with a valid range, and `onCancel` during a search. */
export const rangeForm = (onSearch: (range: Range) => void, onCancel: () => void): RangeForm => {
  const start = field("start", "First MC number", "100001")
  const end = field("end", "Last MC number", "100500")
  const counted = h("output", { class: "counted", for: "start end" })
  const mistaken = h("p", { id: "mistake", class: "failure", role: "alert" })
  const submit = h("button", { type: "submit", class: "primary" }, "Search")
  const cancel = h(
    "button",
    { type: "button", class: "cancel", hidden: true, onclick: onCancel },
    "Cancel",
  )
  const inputs = { start: start.input, end: end.input }

  const showCount = () => {
    counted.textContent = countWords(start.input.value, end.input.value)
  }
  const mark = (mistake: FieldError | undefined) => {
    for (const input of [start.input, end.input]) input.removeAttribute("aria-invalid")
    mistaken.textContent = mistake?.text ?? ""
    if (mistake) inputs[mistake.field].setAttribute("aria-invalid", "true")
  }
  const read = () => {
    const range = readRange(start.input.value, end.input.value)
    if (isRange(range)) {
      mark(undefined)
      return range
    }
    mark(range)
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
        mark(undefined)
        showCount()
      },
    },
    start.element,
    end.element,
    h("div", { class: "buttons" }, submit, cancel),
    counted,
    mistaken,
  )
  return {
    element,
    read,
    fill: (texts) => {
      start.input.value = texts.start
      end.input.value = texts.end
      mark(undefined)
      showCount()
    },
    showError: (text) => morphChildren(mistaken, [document.createTextNode(text)]),
    setRunning: (is_running) => {
      const had_focus = document.activeElement === cancel
      cancel.hidden = !is_running
      if (had_focus && !is_running) submit.focus()
    },
  }
}
