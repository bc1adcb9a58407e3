/** Class files in each form that they are met in. Source: plant facts 1. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkClasses, parseClasses, readClasses } from "../classes.ts"
import { newPlace } from "./converted.ts"

const refused = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    // What is thrown is looked at below.
    return (error as { readonly detail?: string }).detail ?? String(error)
  }
  return "taken"
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

  it("is a text of one name a line", () => {
    expect(parseClasses(`${two.join("\r\n")}\n\n`, "text")).toEqual(two)
  })

  it("may begin with a byte order mark, and its names pass through as they are", () => {
    expect(parseClasses('\uFEFF{"0":" Haunglongbing_(Citrus greening) ","1":"b"}')).toEqual([
      " Haunglongbing_(Citrus greening) ",
      "b",
    ])
  })

  const broken: Readonly<Record<string, readonly [string, string]>> = {
    "a gap": ['{"0":"a","2":"c"}', "has 2 classes, and none of the index 1"],
    "a gap of names": ['{"a":0,"c":2}', "has 2 classes, and none of the index 1"],
    "an index twice": ['{"a":0,"b":0}', "has two classes of the index 0"],
    "a name twice": ['["a","b","a"]', 'has "a" twice'],
    "nothing in an object": ["{}", "is empty"],
    "nothing in a list": ["[]", "is empty"],
    "both directions": ['{"0":"a","b":1}', "maps neither"],
    "a nested object": ['{"0":{"name":"a"}}', "maps neither"],
    "half an index": ['{"a":0.5}', "maps neither"],
    "an index below zero": ['{"a":-1}', "maps neither"],
    "a number in a list": ['["a",1]', "lists what is no name"],
    "an empty name": ['["a",""]', "has a class without a name"],
    "a bare number": ["3", "holds neither an object nor a list"],
    "no JSON": ["{'0':'a'}", "is no valid JSON"],
    "no text": ["", "is no valid JSON"],
    "a huge index": ['{"999999999":"a"}', "none of the index 0"],
    "ten thousand and one names": [
      JSON.stringify(Array.from({ length: 10_001 }, (_, at) => `n${at}`)),
      "has more than 10000 classes",
    ],
  }
  for (const [name, [text, reason]] of Object.entries(broken)) {
    it(`with ${name} is refused in one line`, () => {
      const detail = refused(() => parseClasses(text))
      expect(detail).toMatch(/^The class file [^\n]+\.$/)
      expect(detail).toContain(reason)
    })
  }

  it("must have as many classes as the network has outputs", () => {
    expect(refused(() => checkClasses(two, 2))).toBe("taken")
    expect(refused(() => checkClasses(two, 38))).toContain(
      "has 2 classes, and the network has 38 outputs",
    )
  })
})

describe("the file beside the model", () => {
  const folderWith = (files: Readonly<Record<string, string>>) => {
    const folder = newPlace("beside")
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

  it("is not looked for where one is set", async () => {
    const both = { "class_indices.json": '["a","b"]', "labels.txt": "c\nd\n" }
    expect(await folderWith(both)("labels.txt")).toEqual(["c", "d"])
  })

  it("that is not there is told in a line that says what to do", async () => {
    const detail = await detailOf(folderWith({})())
    expect(detail).toMatch(
      /^The class file \S+class_indices\.json is not there: .*plant\.classes\.$/,
    )
  })

  it("of more than a megabyte is not read", async () => {
    const large = { "class_indices.json": `["a${" ".repeat(2 ** 20)}"]` }
    expect(await detailOf(folderWith(large)())).toContain("has more than 1 MB")
  })
})
