/** Programs of processes and threads that this one starts. */
import { basename, join } from "node:path"

/**
 * The file of the program at `path` in this folder, in the form that this file has: the bundle's if
 * this file is in the bundle, which has all programs in one folder.
 */
export const programBeside = (path: string) =>
  import.meta.filename.endsWith(".ts")
    ? join(import.meta.dirname, `${path}.ts`)
    : join(import.meta.filename, `../${basename(path)}.js`)
