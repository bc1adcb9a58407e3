/** One photo: its preview, the prediction, and the heat map. */
import { announce } from "../announcement.ts"
import { type Child, h, morphChildren, s } from "../element.ts"
import type { Explanation, Likely, Prediction } from "./api.ts"
import { classText, probabilityText, splitClassName } from "./class-name.ts"
import { fetchHeatmap, type Problem, predict, type Result } from "./client.ts"
import { demoBadge } from "./model-line.ts"
import { drawFile, drawPng, drawWithoutExif } from "./picture.ts"

/** Minimum probability of a confident prediction. */
const confident_min = 0.6

export interface LeafCard {
  readonly element: HTMLElement
  /** Requests the prediction; resolves once the card shows the response. */
  readonly load: (is_demo: boolean) => Promise<void>
}

/** Hidden from screen readers: the text next to it has the same value. */
const bar = (probability: number) =>
  s(
    "svg",
    { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "ground", width: 100, height: 6 }),
    s("rect", { class: "value", width: (probability * 100).toFixed(2), height: 6 }),
  )

const likelyClass = ({ class: name, probability }: Likely) =>
  h(
    "li",
    {},
    h("span", { class: "class" }, classText(name)),
    h("span", { class: "chance" }, probabilityText(probability)),
    bar(probability),
  )

const headlineOf = (name: string) => {
  const { crop, state } = splitClassName(name)
  return crop === "" ? state : [h("span", { class: "crop" }, `${crop}: `), state]
}

const predictionParts = ({ prediction, predictions }: Prediction, is_demo: boolean): Node[] => {
  const [first] = predictions ?? []
  const is_unsure = first !== undefined && first.probability < confident_min
  return [
    h("h3", {}, headlineOf(prediction), is_demo && demoBadge()),
    h("p", { class: "raw" }, h("code", {}, prediction)),
    ...(is_unsure
      ? [h("p", { class: "unsure" }, "Low confidence: compare the other classes.")]
      : []),
    ...(predictions ? [h("ol", { class: "bars" }, predictions.map(likelyClass))] : []),
  ]
}

const problemParts = ({ title, text, is_file_error }: Problem, retry: () => void): Node[] => [
  h("h3", { class: "failure" }, title),
  h("p", {}, text),
  ...(is_file_error ? [] : [h("button", { type: "button", onclick: retry }, "Retry")]),
]

/** The preview, and the heat map in its place on request. */
const preview = (file: File) => {
  const photo = h("canvas", { role: "img", "aria-label": `Preview of ${file.name}` })
  const map = h("canvas", {
    role: "img",
    hidden: true,
    "aria-label": `Heat map of ${file.name}: regions that support the predicted class`,
  })
  const no_preview = h("p", { class: "no-preview", hidden: true }, "No preview")
  const element = h("figure", { class: "picture" }, photo, map, no_preview)
  const drawing = drawFile(photo, file).then((is_drawn) => {
    photo.hidden = !is_drawn
    no_preview.hidden = is_drawn
    return is_drawn
  })
  /** Draws the heat map; false if that fails. */
  const drawMap = async ({ heatmap, auto_orient }: Explanation) => {
    const has_map = await drawPng(map, heatmap)
    // If the network ignores the EXIF orientation, show the photo as the network sees it.
    if (has_map && !auto_orient && (await drawing)) await drawWithoutExif(photo, file)
    return has_map
  }
  const show = (is_map: boolean) => {
    map.hidden = !is_map
    photo.hidden = is_map || !no_preview.hidden
  }
  return { element, drawMap, show }
}

/** The button that fetches the heat map once, then toggles it. */
const mapButton = (file: File, { drawMap, show }: ReturnType<typeof preview>) => {
  let has_map = false
  let is_loading = false
  const state = h("p", { class: "failure" })
  const button = h("button", { type: "button", "aria-pressed": "false" }, "Show heat map")
  const toggle = (is_on: boolean) => {
    button.setAttribute("aria-pressed", String(is_on))
    show(is_on)
  }
  const fetchMap = async () => {
    const result = await fetchHeatmap(file)
    has_map = result.kind === "ok" && (await drawMap(result.body))
    if (has_map) {
      toggle(true)
      announce("Heat map shown")
    } else {
      const { title, text } =
        result.kind === "problem" ? result.problem : { title: "No heat map", text: "" }
      state.textContent = `${title}. ${text}`
    }
  }
  button.addEventListener("click", () => {
    if (has_map) return toggle(button.getAttribute("aria-pressed") !== "true")
    if (is_loading) return undefined
    is_loading = true
    state.textContent = ""
    button.textContent = "Loading\u2026"
    return void fetchMap().finally(() => {
      is_loading = false
      button.textContent = "Show heat map"
    })
  })
  return h("div", { class: "explain" }, button, state)
}

const announcePrediction = (file: File, { prediction, predictions }: Prediction) => {
  const [first] = predictions ?? []
  const suffix = first === undefined ? "" : `, ${probabilityText(first.probability)}`
  announce(`${file.name}: ${classText(prediction)}${suffix}.`)
}

/** `onRetry` requests the prediction again. */
export const leafCard = (file: File, onRetry: () => void): LeafCard => {
  const picture = preview(file)
  const verdict = h("div", { class: "verdict", "aria-busy": "true" })
  const explanation = h("div")
  const element = h(
    "li",
    { class: "leaf" },
    picture.element,
    h(
      "div",
      { class: "details" },
      h("p", { class: "eyebrow name" }, file.name),
      verdict,
      explanation,
    ),
  )
  const showWaiting = (text: Child) => morphChildren(verdict, [h("p", { class: "waiting" }, text)])
  const show = (result: Result<Prediction>, is_demo: boolean) => {
    verdict.setAttribute("aria-busy", "false")
    if (result.kind === "problem") {
      morphChildren(verdict, problemParts(result.problem, onRetry))
      announce(`${file.name}: ${result.problem.title}.`)
      return
    }
    morphChildren(verdict, predictionParts(result.body, is_demo))
    explanation.replaceChildren(mapButton(file, picture))
    announcePrediction(file, result.body)
  }
  showWaiting("Waiting\u2026")
  return {
    element,
    load: async (is_demo) => {
      verdict.setAttribute("aria-busy", "true")
      showWaiting("Predicting\u2026")
      show(await predict(file), is_demo)
    },
  }
}
