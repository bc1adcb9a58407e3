/**
 * Reads class files, which map output indices to names. Four formats are common:
 * `{"0": "Apple___healthy"}`, `{"Apple___healthy": 0}`, an array, and text with one name per line.
 *
 * Names are not changed. Source: plant facts 1; decisions of document 3, plant model.
 */
import { existsSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { basename, dirname, extname, join } from "node:path"
import { isRecord } from "./keras/config.ts"
import { reject } from "./model-error.ts"

/** Enough for 10,000 classes with names of 100 characters. */
const file_bytes_max = 2 ** 20
const classes_max = 10_000

const rejectFile = (detail: string) => reject(`The class file ${detail}.`)

const namesOfPairs = (pairs: ReadonlyArray<readonly [number, string]>): ReadonlyArray<string> => {
  const names = new Map<number, string>()
  for (const [index, name] of pairs) {
    if (names.has(index)) return rejectFile(`has two classes with the index ${index}`)
    names.set(index, name)
  }
  return Array.from({ length: pairs.length }, (_, index) => {
    return (
      names.get(index) ??
      rejectFile(`has ${pairs.length} classes, but none with the index ${index}`)
    )
  })
}

const namesOfRecord = (json: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const entries = Object.entries(json)
  const by_index = entries.flatMap(([key, name]) =>
    /^(0|[1-9]\d{0,8})$/.test(key) && typeof name === "string"
      ? [[Number(key), name] as const]
      : [],
  )
  if (by_index.length === entries.length) return namesOfPairs(by_index)
  const by_name = entries.flatMap(([name, index]) =>
    typeof index === "number" && Number.isSafeInteger(index) && index >= 0
      ? [[index, name] as const]
      : [],
  )
  if (by_name.length === entries.length) return namesOfPairs(by_name)
  return rejectFile(
    'maps neither indices to names ({"0": "..."}) nor names to indices ({"...": 0})',
  )
}

const parseJson = (text: string): ReadonlyArray<string> => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return rejectFile("is not valid JSON")
  }
  if (Array.isArray(json)) {
    return json.every((name) => typeof name === "string")
      ? json
      : rejectFile("has an entry that is not a name")
  }
  return isRecord(json) ? namesOfRecord(json) : rejectFile("is neither an object nor a list")
}

const parseLines = (text: string) => {
  const lines = text.split(/\r?\n/)
  while (lines.at(-1)?.trim() === "") lines.pop()
  return lines
}

/** Parses the text of a class file. Throws a ModelError. */
export const parseClasses = (text: string, form: "json" | "text" = "json") => {
  const trimmed = text.replace(/^\uFEFF/, "")
  const names = form === "json" ? parseJson(trimmed) : parseLines(trimmed)
  if (names.length === 0) return rejectFile("is empty")
  if (names.length > classes_max) return rejectFile(`has more than ${classes_max} classes`)
  if (names.some((name) => name.trim() === "")) return rejectFile("has a class without a name")
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate !== undefined) return rejectFile(`has ${JSON.stringify(duplicate)} twice`)
  return names
}

/** The class file next to a model: `<model>.classes.json`, else `class_indices.json`. */
export const defaultClassFile = (model_path: string): string => {
  const folder = dirname(model_path)
  const model_classes_file = join(
    folder,
    `${basename(model_path, extname(model_path))}.classes.json`,
  )
  return existsSync(model_classes_file) ? model_classes_file : join(folder, "class_indices.json")
}

/** Reads a class file; if `path` is empty, the one next to the model. Throws a ModelError. */
export const readClasses = async (
  path: string,
  model_path: string,
): Promise<ReadonlyArray<string>> => {
  const chosen = path === "" ? defaultClassFile(model_path) : path
  const found = await stat(chosen).catch(() => undefined)
  if (found === undefined) {
    const advice = path === "" ? ": put it next to the model, or set plant.classes" : ""
    return rejectFile(`${chosen} does not exist${advice}`)
  }
  if (!found.isFile()) return rejectFile(`${chosen} is not a file`)
  if (found.size > file_bytes_max) return rejectFile(`${chosen} is larger than 1 MB`)
  const text = await readFile(chosen, "utf8").catch(() => rejectFile(`${chosen} cannot be read`))
  return parseClasses(text, extname(chosen).toLowerCase() === ".txt" ? "text" : "json")
}

/** Throws a ModelError if the network has a different number of outputs. */
export const checkClasses = (names: ReadonlyArray<string>, outputs: number) => {
  if (names.length !== outputs) {
    rejectFile(`has ${names.length} classes, but the network has ${outputs} outputs`)
  }
}
