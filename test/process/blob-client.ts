/** Blobs over HTTP in every form that document 1 and DECISIONS have. */
import { createHasher } from "@napi-rs/blake-hash"
