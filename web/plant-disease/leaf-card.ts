/** One photo: its preview, the prediction, and the heat map. */
import { announce } from "../announcement.ts"
import { type Child, h, morphChildren, s } from "../element.ts"
import type { Explanation, Likely, Prediction } from "./api.ts"
import { probabilityText, classText, splitClassName } from "./class-words.ts"
import { demoBadge } from "./model-line.ts"
import { drawFile, drawPng, drawWithoutExif } from "./picture.ts"
import { type Result, fetchHeatmap, type Problem, predict } from "./predict.ts"

/** Minimum probability of a confident prediction. */
const sure = 0.6

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

const likely = ({ class: name, probability }: Likely) =>
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

const said = ({ prediction, predictions }: Prediction, is_demo: boolean): Node[] => {
  const [first] = predictions ?? []
  const is_unsure = first !== undefined && first.probability < sure
  return [
    h("h3", {}, headlineOf(prediction), is_demo && demoBadge()),
    h("p", { class: "raw" }, h("code", {}, prediction)),
    ...(is_unsure ? [h("p", { class: "unsure" }, "It is not sure: read the others too.")] : []),
    ...(predictions ? [h("ol", { class: "bars" }, predictions.map(likely))] : []),
  ]
}

const trouble = ({ title, text, is_file_error: is_of_file }: Problem, again: () => void): Node[] => [
  h("h3", { class: "failure" }, title),
  h("p", {}, text),
  ...(is_of_file ? [] : [h("button", { type: "button", onclick: again }, "Try again")]),
]

/** The preview, and the heat map in its place on request. */
const pictures = (file: File) => {
  const photo = h("canvas", { role: "img", "aria-label": `Preview of ${file.name}` })
  const map = h("canvas", {
    role: "img",
    hidden: true,
    "aria-label": `Where ${file.name} speaks for its class, as the network sees it`,
  })
  const none = h("p", { class: "no-preview", hidden: true }, "No preview")
  const element = h("figure", { class: "picture" }, photo, map, none)
  const drawing = drawFile(photo, file).then((is_drawn) => {
    photo.hidden = !is_drawn
    none.hidden = is_drawn
    return is_drawn
  })
  /** Draws the heat map; false if that fails. */
  const drawMap = async ({ heatmap, auto_orient }: Explanation) => {
    const is_there = await drawPng(map, heatmap)
    // If the network ignores the EXIF orientation, show the photo as the network sees it.
    if (is_there && !auto_orient && (await drawing)) await drawWithoutExif(photo, file)
    return is_there
  }
  const show = (is_map: boolean) => {
    map.hidden = !is_map
    photo.hidden = is_map || !none.hidden
  }
  return { element, drawMap, show }
}

/** The button that fetches the heat map once, then toggles it. */
const mapButton = (file: File, { drawMap, show }: ReturnType<typeof pictures>) => {
  let is_there = false
  let is_asking = false
  const state = h("p", { class: "failure" })
  const button = h("button", { type: "button", "aria-pressed": "false" }, "Show where it looks")
  const press = (is_on: boolean) => {
    button.setAttribute("aria-pressed", String(is_on))
    show(is_on)
  }
  const fetchMap = async () => {
    const answer = await fetchHeatmap(file)
    is_there = answer.kind === "answer" && (await drawMap(answer.body))
    if (is_there) {
      press(true)
      announce("The heat map is shown.")
    } else {
      const { title, text } =
        answer.kind === "problem" ? answer.problem : { title: "No heat map", text: "" }
      state.textContent = `${title}. ${text}`
    }
  }
  button.addEventListener("click", () => {
    if (is_there) return press(button.getAttribute("aria-pressed") !== "true")
    if (is_asking) return undefined
    is_asking = true
    state.textContent = ""
    button.textContent = "Looking\u2026"
    return void fetchMap().finally(() => {
      is_asking = false
      button.textContent = "Show where it looks"
    })
  })
  return h("div", { class: "explain" }, button, state)
}

const tell = (file: File, { prediction, predictions }: Prediction) => {
  const [first] = predictions ?? []
  const how = first === undefined ? "" : `, ${probabilityText(first.probability)}`
  announce(`${file.name}: ${classText(prediction)}${how}.`)
}

/** `onAgain` requests the prediction again. */
export const leafCard = (file: File, onAgain: () => void): LeafCard => {
  const picture = pictures(file)
  const words = h("div", { class: "verdict", "aria-busy": "true" })
  const explanation = h("div")
  const element = h(
    "li",
    { class: "leaf" },
    picture.element,
    h("div", { class: "told" }, h("p", { class: "eyebrow name" }, file.name), words, explanation),
  )
  const wait = (text: Child) => morphChildren(words, [h("p", { class: "waiting" }, text)])
  const show = (answer: Result<Prediction>, is_demo: boolean) => {
    words.setAttribute("aria-busy", "false")
    if (answer.kind === "problem") {
      morphChildren(words, trouble(answer.problem, onAgain))
      announce(`${file.name}: ${answer.problem.title}.`)
      return
    }
    morphChildren(words, said(answer.body, is_demo))
    explanation.replaceChildren(mapButton(file, picture))
    tell(file, answer.body)
  }
  wait("Waiting\u2026")
  return {
    element,
    load: async (is_demo) => {
      words.setAttribute("aria-busy", "true")
      wait("Looking at it\u2026")
      show(await predict(file), is_demo)
    },
  }
}
