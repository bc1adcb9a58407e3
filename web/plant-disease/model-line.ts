/** The model in use and its classes. */
import { h } from "../element.ts"
import { count } from "../format.ts"
import { badge } from "../mark.ts"
import type { ModelInfo } from "./api.ts"
import { classText } from "./class-name.ts"
import type { Problem } from "./client.ts"

/** Number of hash digits to show, enough to distinguish models. */
const hash_digits = 12

export const demoBadge = () => badge("demo", "Demo", "Trained on drawn leaves only")

const about = ({ format, classes, parameters, sha256 }: ModelInfo) =>
  [
    format,
    `${count(classes.length)} classes`,
    ...(parameters === null ? [] : [`${count(parameters)} weights`]),
    `SHA-256 ${sha256.slice(0, hash_digits)}`,
  ].join(" \u00b7 ")

export const modelLine = (model: ModelInfo): HTMLElement =>
  h(
    "div",
    { class: "source", "data-key": "model" },
    h(
      "p",
      {},
      h("span", { class: "standing live" }, model.name),
      model.is_demo && demoBadge(),
      h("span", { class: "about" }, about(model)),
    ),
    model.is_demo &&
      h(
        "p",
        { class: "remark" },
        "The demo model was trained on drawn leaves only, so its predictions for photos are ",
        "meaningless. Set plant.model to your own network.",
      ),
    h(
      "details",
      {},
      h("summary", {}, "Classes"),
      h(
        "ul",
        { class: "classes" },
        model.classes.map((name) => h("li", {}, classText(name))),
      ),
    ),
  )

/** Shown if the model is unknown. */
export const noModel = ({ title, text }: Problem): HTMLElement =>
  h(
    "div",
    { class: "source", "data-key": "no-model" },
    h("p", {}, h("span", { class: "standing failing" }, title)),
    h("p", { class: "failure" }, text),
  )
