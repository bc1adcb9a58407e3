/** What an image may call itself. Source: decisions of document 3, plant errors. */

/** The declared type of a part; what it is, its first bytes decide. */
export const part_types: ReadonlyArray<string> = [
  "application/octet-stream",
  "image/jpeg",
  "image/jpg",
  "image/png",
]

/** The ending of a file's name, if it has one; in any case of its letters. */
export const extensions: ReadonlyArray<string> = ["jpg", "jpeg", "png"]
