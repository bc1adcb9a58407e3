/** The plant disease page: predicts the class of each photo in turn. */
import { announce } from "../announcement.ts"
import { h, morphChildren } from "../element.ts"
import { fillHeader } from "../header.ts"
import type { ModelInfo } from "./api.ts"
import { fetchModel } from "./client.ts"
import { type LeafCard, leafCard } from "./leaf-card.ts"
import { demoBadge, modelLine, noModel } from "./model-line.ts"
import { photoChooser } from "./photo-chooser.ts"

/** Maximum number of photos on the page; the oldest are removed. */
const cards_max = 60
/** Polling interval while the service has no model. */
const model_retry_ms = 10_000

let model: ModelInfo | undefined
const queue: LeafCard[] = []
let is_working = false

const status = h("div", { class: "status-parts" })
fillHeader("Plants", status)
const model_place = h("div", { class: "registry" })
const cards = h("ol", { class: "leaves" })
const title = h("h2", { id: "result" })
const result = h(
  "section",
  { class: "result", "aria-labelledby": "result", hidden: true },
  title,
  cards,
)

/** Sends one request at a time: parallel ones would be no faster and delay other users. */
const processQueue = async () => {
  if (is_working) return
  is_working = true
  for (let card = queue.shift(); card !== undefined; card = queue.shift()) {
    await card.load(model?.is_demo ?? false)
  }
  is_working = false
}

const enqueue = (card: LeafCard) => {
  queue.push(card)
  void processQueue()
}

const newCard = (file: File) => {
  const card: LeafCard = leafCard(file, () => enqueue(card))
  return card
}

const addFiles = (files: readonly File[]) => {
  if (files.length === 0) return
  const accepted = files.slice(0, cards_max)
  const left_out = files.length - accepted.length
  const added = accepted.map(newCard)
  cards.prepend(...added.map(({ element }) => element))
  while (cards.childElementCount > cards_max) cards.lastElementChild?.remove()
  result.hidden = false
  title.textContent =
    cards.childElementCount === 1 ? "1 photo" : `${cards.childElementCount} photos`
  if (left_out > 0) announce(`${cards_max} photos are shown; ${left_out} were skipped.`)
  for (const card of added) enqueue(card)
}

const readModel = async () => {
  const result = await fetchModel()
  if (result.kind === "ok") {
    model = result.body
    morphChildren(model_place, [modelLine(model)])
    morphChildren(status, model.is_demo ? [demoBadge()] : [])
    return
  }
  morphChildren(model_place, [noModel(result.problem)])
  setTimeout(() => void readModel(), model_retry_ms)
}

const card = h(
  "section",
  { class: "search", "aria-labelledby": "search" },
  h("h2", { id: "search" }, "Diagnose a leaf"),
  h("p", { class: "about" }, "Predicts the most likely disease of one leaf from its photo."),
  photoChooser(addFiles),
  model_place,
)
document.querySelector("#main")?.replaceChildren(card, result)
void readModel()
