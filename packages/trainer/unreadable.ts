/** Handles files that cannot be decoded: fails for a class without any image, else reports. */
import { printable } from "#models"
import type { Packed } from "./folder.ts"

/** The number of names that one line lists. */
const listed_max = 5

const listOf = (names: ReadonlyArray<string>) => {
  const more = names.length > listed_max ? ` and ${names.length - listed_max} more` : ""
  return `${names.slice(0, listed_max).map(printable).join(", ")}${more}`
}

const ofClasses = (names: ReadonlyArray<string>) =>
  `of the ${names.length === 1 ? "class" : "classes"} ${listOf(names)}`

/**
 * Throws an error with a one-line message if a class has images but none can be decoded, in either
 * part of a split folder: the network would never predict that class.
 */
export const requireRead = (
  folder: string,
  classes: ReadonlyArray<string>,
  parts: ReadonlyArray<Packed>,
): void => {
  if (parts.every(({ pictures }) => pictures.labels.length === 0)) {
    throw new Error(`no image in ${folder} can be read`)
  }
  for (const { images, pictures } of parts) {
    const present = new Set(images.files.map(({ label }) => label))
    const read = new Set(pictures.labels)
    const unread = classes.filter((_, label) => present.has(label) && !read.has(label))
    if (unread.length > 0) {
      throw new Error(`no image can be read in ${images.folder} ${ofClasses(unread)}`)
    }
  }
}

/** Reports classes without held-out images, which the metrics do not cover. */
export const notMeasured = (classes: ReadonlyArray<string>, held_out: Uint16Array) => {
  const measured = new Set(held_out)
  const missing = classes.filter((_, label) => !measured.has(label))
  return missing.length === 0 ? [] : [`nothing is held out ${ofClasses(missing)}`]
}

/** Reports files that cannot be decoded. */
export const leftOut = (files: ReadonlyArray<string>) => {
  const what = `${files.length} ${files.length === 1 ? "file" : "files"} left out`
  return files.length === 0 ? [] : [`${what} that cannot be read: ${listOf(files)}`]
}
