/** Entry files of the processes and threads that this process starts. */
import { basename, join } from "node:path"

/**
 * The entry file at `path` in this folder. In the bundle all entry files are in one folder.
 */
export const entryFile = (path: string) =>
  import.meta.filename.endsWith(".ts")
    ? join(import.meta.dirname, `${path}.ts`)
    : join(import.meta.filename, `../${basename(path)}.js`)
