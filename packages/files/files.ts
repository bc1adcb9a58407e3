/** Files and folders of an operator's machine: private, whole or absent, and watched. */
export { watched } from "./changes.ts"
export { entriesOf, inside } from "./entries.ts"
export { makeFolder } from "./folder.ts"
export {
  FileFailure,
  findBounded,
  readBounded,
  removeFile,
  syncFolder,
  writeForOwner,
  writePrivate,
} from "./private.ts"
