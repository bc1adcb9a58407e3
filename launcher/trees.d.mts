export type TreeName =
  | "radosgw"
  | "openstack"
  | "pandas"
  | "pillow"
  | "fastapi"
  | "swift"
  | "nginx"
  | "shells"
  | "redis"
  | "prometheus"
  | "postgresql"
  | "chromium"

/** Each with what must be there of it, in the tree or in the system. */
export const trees: Readonly<
  Record<
    TreeName,
    {
      readonly packages: readonly string[]
      readonly paths: readonly string[]
      /** What is downloaded, at most. */
      readonly megabytes: number
      /** The command that installs it into the system. */
      readonly by_hand: string
    }
  >
>

/** Where the tree is: `/` where the system itself has it, undefined where nobody has. */
export const findTree: (name: TreeName) => string | undefined

/** Variables in which the tree's programs run; none of them is needed for the system's. */
export const treeEnvironment: (
  folder: string,
  environment?: NodeJS.ProcessEnv,
) => Readonly<Record<string, string>>

/** Fetches a tree into the cache. Answers why it is missing, nothing when it is there. */
export const fetchTree: (name: TreeName) => string | undefined
