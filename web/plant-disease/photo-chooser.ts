/** Accepts photos: chosen, dropped, pasted, or taken with a phone. */
import { h } from "../element.ts"

const accepted = "image/jpeg,image/png"

const chooser = (text: string, kind: string, onFiles: (files: readonly File[]) => void) => {
  const camera = kind === "camera"
  const input = h("input", {
    type: "file",
    accept: accepted,
    class: "visually-hidden",
    ...(camera ? { capture: "environment" } : { multiple: true }),
    onchange: () => {
      onFiles([...(input.files ?? [])])
      // Reset it, so that choosing the same file again fires an event.
      input.value = ""
    },
  })
  return h("label", { class: `button ${kind}` }, text, input)
}

/** Calls `onFiles` with the new files in order. */
export const photoChooser = (onFiles: (files: readonly File[]) => void): HTMLElement => {
  const element = h(
    "div",
    { class: "drop" },
    h("p", { class: "hint" }, "Drop photos of leaves here, paste one, or"),
    h(
      "div",
      { class: "choosers" },
      chooser("Choose photos", "primary", onFiles),
      chooser("Take a photo", "camera", onFiles),
    ),
    h("p", { class: "note" }, "JPEG or PNG. Works best with one leaf that fills the picture."),
  )
  const highlight = (is_over: boolean) => element.classList.toggle("is-over", is_over)
  // The browser would open a file that is dropped outside and leave the page.
  addEventListener("dragover", (event) => {
    event.preventDefault()
    highlight(true)
  })
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) highlight(false)
  })
  addEventListener("drop", (event) => {
    event.preventDefault()
    highlight(false)
    onFiles([...(event.dataTransfer?.files ?? [])])
  })
  addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])]
    if (files.length > 0) onFiles(files)
  })
  return element
}
