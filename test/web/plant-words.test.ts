/** Class names and probabilities as the plant disease page displays them. */
import { describe, expect, it } from "vitest"
import { classText, probabilityText } from "../../web/plant-disease/class-name.ts"

describe("a class name", () => {
  it.each([
    ["Apple___Cedar_apple_rust", "Apple: Cedar apple rust"],
    ["Cherry_(including_sour)___healthy", "Cherry (including sour): healthy"],
    ["Corn_(maize)___Common_rust_", "Corn (maize): Common rust"],
    [
      "Corn_(maize)___Cercospora_leaf_spot Gray_leaf_spot",
      "Corn (maize): Cercospora leaf spot Gray leaf spot",
    ],
    ["Pepper,_bell___Bacterial_spot", "Pepper, bell: Bacterial spot"],
    [
      "Tomato___Spider_mites Two-spotted_spider_mite",
      "Tomato: Spider mites Two-spotted spider mite",
    ],
    ["Pepper__bell", "Pepper bell"],
    ["Background_without_leaves", "Background without leaves"],
    ["DemoOak___leaf_spot", "Demo Oak: leaf spot"],
    ["Demo_not_a_leaf", "Demo not a leaf"],
    ["A___b___c", "A: b c"],
    ["", ""],
  ])("%s is said as %s", (name, expected) => expect(classText(name)).toBe(expected))
})

describe("a chance", () => {
  it.each([
    [1, "100%"],
    [0.9991, ">99%"],
    [0.9312, "93%"],
    [0.0995, "10%"],
    [0.0511, "5.1%"],
    [0.0004, "<0.1%"],
    [0, "0.0%"],
  ])("of %d is said as %s", (probability, expected) =>
    expect(probabilityText(probability)).toBe(expected),
  )
})
