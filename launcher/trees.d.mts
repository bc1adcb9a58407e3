export type TreeName =
  | "radosgw"
  | "openstack"
  | "pandas"
  | "pillow"
  | "pip"
  | "fastapi"
  | "swift"
  | "nginx"
  | "shells"
  | "redis"
  | "prometheus"
  | "postgresql"
  | "chromium"

/** Each tree: its packages, and the paths that must exist in the tree or in the system. */
export const trees: Readonly<
  Record<
    TreeName,
    {
      readonly packages: readonly string[]
      readonly paths: readonly string[]
      /** Maximum size of the download. */
      readonly megabytes: number
      /** The command that installs the packages into the system. */
      readonly install_command: string
    }
  >
>

/**
 * The folder of the tree: `/` if the system itself has everything; undefined if parts are missing.
 */
export const findTree: (name: TreeName) => string | undefined

/** The environment variables for the tree's programs; none if they are the system's. */
export const treeEnvironment: (
  folder: string,
  environment?: NodeJS.ProcessEnv,
) => Readonly<Record<string, string>>

/** Downloads a tree into the cache; returns the reason if that fails. */
export const fetchTree: (name: TreeName) => Promise<string | undefined>
