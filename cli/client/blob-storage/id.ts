/** Blob ids on the command line: 32 hex digits. Source: document 1 §2 BlobID. */
import { failure } from "#cli/client/failure.ts"
import { type Json, textAt } from "#cli/client/json.ts"

/** Hex of the base64 id in a response. */
export const hexOf = (id: Json | undefined) => {
  const text = typeof id === "string" ? id : textAt(id, "id")
  return Buffer.from(text ?? "", "base64").toString("hex")
}

/** The id in lower case. ClientFailed if the text is not an id. */
export const blobId = (text: string) => {
  if (/^[0-9a-f]{32}$/i.test(text)) return text.toLowerCase()
  throw failure("usage", `${text} is not a blob ID, which has 32 hex digits: see almanac blobs ls`)
}
