/** The media types and file extensions of images. Source: decisions of document 3, plant errors. */

/** Accepted media types of a part. The actual format is determined by its first bytes. */
export const part_types: ReadonlyArray<string> = [
  "application/octet-stream",
  "image/jpeg",
  "image/jpg",
  "image/png",
]

/** Accepted file extensions, if the name has one; case-insensitive. */
export const extensions: ReadonlyArray<string> = ["jpg", "jpeg", "png"]
