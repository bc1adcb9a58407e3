/** Class files in each supported format. Source: plant facts 1. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkClasses, parseClasses, readClasses } from "../classes.ts"
import { newPath } from "./run-network.ts"

const errorOf = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    // The assertions below check its shape.
    return (error as { readonly detail?: string }).detail ?? String(error)
  }
  return "accepted"
}

const two = ["Corn_(maize)___Common_rust_", "Pepper,_bell___healthy"]

describe("a class file", () => {
  it("maps indices to names", () => {
    expect(parseClasses(JSON.stringify({ 0: two[0], 1: two[1] }))).toEqual(two)
    const letters = Array.from("abcdefghijk")
    const turned = letters.map((letter, index) => `"${index}":"${letter}"`).reverse()
    expect(parseClasses(`{${turned.join(",")}}`)).toEqual(letters)
  })

  it("maps names to indices", () => {
    expect(parseClasses(JSON.stringify({ [two[1] ?? ""]: 1, [two[0] ?? ""]: 0 }))).toEqual(two)
  })

  it("may have numbers for names", () => {
    expect(parseClasses('{"7":0,"3":1}')).toEqual(["7", "3"])
  })

  it("is a list", () => {
    expect(parseClasses(JSON.stringify(two))).toEqual(two)
  })

  it("is text with one name per line", () => {
    expect(parseClasses(`${two.join("\r\n")}\n\n`, "text")).toEqual(two)
  })

  it("may begin with a byte order mark, and its names are not changed", () => {
    expect(parseClasses('\uFEFF{"0":" Haunglongbing_(Citrus greening) ","1":"b"}')).toEqual([
      " Haunglongbing_(Citrus greening) ",
      "b",
    ])
  })

  const broken: Readonly<Record<string, readonly [string, string]>> = {
    "a gap": ['{"0":"a","2":"c"}', "has 2 classes, but none with the index 1"],
    "a gap of names": ['{"a":0,"c":2}', "has 2 classes, but none with the index 1"],
    "an index twice": ['{"a":0,"b":0}', "has two classes with the index 0"],
    "a name twice": ['["a","b","a"]', 'has "a" twice'],
    "nothing in an object": ["{}", "is empty"],
    "nothing in a list": ["[]", "is empty"],
    "both directions": ['{"0":"a","b":1}', "maps neither"],
    "a nested object": ['{"0":{"name":"a"}}', "maps neither"],
    "half an index": ['{"a":0.5}', "maps neither"],
    "an index below zero": ['{"a":-1}', "maps neither"],
    "a number in a list": ['["a",1]', "has an entry that is not a name"],
    "an empty name": ['["a",""]', "has a class without a name"],
    "a bare number": ["3", "is neither an object nor a list"],
    "no JSON": ["{'0':'a'}", "is not valid JSON"],
    "no text": ["", "is not valid JSON"],
    "a huge index": ['{"999999999":"a"}', "none with the index 0"],
    "ten thousand and one names": [
      JSON.stringify(Array.from({ length: 10_001 }, (_, at) => `n${at}`)),
      "has more than 10000 classes",
    ],
  }
  for (const [name, [text, reason]] of Object.entries(broken)) {
    it(`with ${name} is rejected in one line`, () => {
      const detail = errorOf(() => parseClasses(text))
      expect(detail).toMatch(/^The class file [^\n]+\.$/)
      expect(detail).toContain(reason)
    })
  }

  it("must have as many classes as the network has outputs", () => {
    expect(errorOf(() => checkClasses(two, 2))).toBe("accepted")
    expect(errorOf(() => checkClasses(two, 38))).toContain(
      "has 2 classes, but the network has 38 outputs",
    )
  })
})

describe("the class file next to the model", () => {
  const folderWith = (files: Readonly<Record<string, string>>) => {
    const folder = newPath("beside")
    mkdirSync(folder)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return (given = "") =>
      readClasses(given === "" ? "" : join(folder, given), join(folder, "leaf.h5"))
  }
  const detailOf = (reading: Promise<unknown>) =>
    reading.then(
      () => "read",
      ({ detail }) => String(detail),
    )

  it("is class_indices.json, or the model's own before it", async () => {
    const general = { "class_indices.json": '["a","b"]' }
    expect(await folderWith(general)()).toEqual(["a", "b"])
    const own = { ...general, "leaf.classes.json": '["c","d"]' }
    expect(await folderWith(own)()).toEqual(["c", "d"])
  })

  it("is not used if another file is configured", async () => {
    const both = { "class_indices.json": '["a","b"]', "labels.txt": "c\nd\n" }
    expect(await folderWith(both)("labels.txt")).toEqual(["c", "d"])
  })

  it("that does not exist is reported with advice", async () => {
    const detail = await detailOf(folderWith({})())
    expect(detail).toMatch(
      /^The class file \S+class_indices\.json does not exist: .*plant\.classes\.$/,
    )
  })

  it("of more than a megabyte is not read", async () => {
    const large = { "class_indices.json": `["a${" ".repeat(2 ** 20)}"]` }
    expect(await detailOf(folderWith(large)())).toContain("is larger than 1 MB")
  })
})
