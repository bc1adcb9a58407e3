/** Private, atomically written files and folders on an operator's machine. */
export { watchFiles } from "./changes.ts"
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
