/** Files of a folder that cannot be read: when nothing is trained for them, and what is told. */
import { printable } from "#models"
import type { Packed } from "./folder.ts"

/** Files, or classes, that one line names. */
const named_max = 5

const named = (names: ReadonlyArray<string>) => {
  const more = names.length > named_max ? ` and ${names.length - named_max} more` : ""
  return `${names.slice(0, named_max).map(printable).join(", ")}${more}`
}

const ofClasses = (names: ReadonlyArray<string>) =>
  `of the ${names.length === 1 ? "class" : "classes"} ${named(names)}`

/**
 * Throws one line where nothing can be read of a class that has images: of a folder that is split
 * already, of either part. A network that never saw a class would never tell it.
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
    const there = new Set(images.found.map(({ label }) => label))
    const read = new Set(pictures.labels)
    const unread = classes.filter((_, label) => there.has(label) && !read.has(label))
    if (unread.length > 0) {
      throw new Error(`no image can be read in ${images.folder} ${ofClasses(unread)}`)
    }
  }
}

/** A line that names the classes of which nothing is held out: the figures say nothing of them. */
export const notMeasured = (classes: ReadonlyArray<string>, held_out: Uint16Array) => {
  const measured = new Set(held_out)
  const missing = classes.filter((_, label) => !measured.has(label))
  return missing.length === 0 ? [] : [`nothing is held out ${ofClasses(missing)}`]
}

/** A line that names files that could not be read. */
export const leftOut = (files: ReadonlyArray<string>) => {
  const what = `${files.length} ${files.length === 1 ? "file" : "files"} left out`
  return files.length === 0 ? [] : [`${what} that cannot be read: ${named(files)}`]
}
