/**
 * Downloads servers of more than one file from Debian's archive: each tree is a folder of the cache
 * with the server's packages and the dependencies that this machine lacks. Needs no root and does
 * not change the system. It uses the machine's own apt sources and keys, because the packages must
 * be compatible with the installed ones.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { cacheDirectory } from "./cache.mjs"
import { run, withPrivateApt } from "./debian.mjs"

/** Each tree: its packages, and the paths that must exist in the tree or in the system. */
export const trees = {
  radosgw: {
    packages: ["radosgw", "ceph-mon", "ceph-osd", "ceph-common"],
    paths: [
      "usr/bin/radosgw",
      "usr/bin/radosgw-admin",
      "usr/bin/ceph-mon",
      "usr/bin/ceph-osd",
      "usr/bin/monmaptool",
      "usr/bin/osdmaptool",
    ],
    megabytes: 70,
    install_command: "apt-get install radosgw ceph-mon ceph-osd ceph-common",
  },
  openstack: {
    packages: [
      "python3-keystone",
      "python3-barbican",
      "python3-manila",
      "uwsgi-core",
      "uwsgi-plugin-python3",
    ],
    paths: [
      "usr/bin/uwsgi-core",
      "usr/lib/python3/dist-packages/keystone",
      "usr/lib/python3/dist-packages/barbican",
      "usr/lib/python3/dist-packages/manila",
    ],
    megabytes: 110,
    install_command:
      "apt-get install python3-keystone python3-barbican python3-manila uwsgi-core " +
      "uwsgi-plugin-python3",
  },
  pandas: {
    packages: ["python3-pandas"],
    paths: ["usr/lib/python3/dist-packages/pandas", "usr/lib/python3/dist-packages/numpy"],
    megabytes: 25,
    install_command: "apt-get install python3-pandas",
  },
  pillow: {
    packages: ["python3-pil"],
    paths: ["usr/lib/python3/dist-packages/PIL"],
    megabytes: 3,
    install_command: "apt-get install python3-pil",
  },
  // Installs a tester of the API, which Debian does not package.
  pip: {
    packages: ["python3-pip"],
    paths: ["usr/lib/python3/dist-packages/pip"],
    megabytes: 10,
    install_command: "apt-get install python3-pip",
  },
  fastapi: {
    packages: [
      "python3-fastapi",
      "python3-uvicorn",
      "python3-uvloop",
      "python3-httptools",
      "python3-numpy",
    ],
    paths: ["fastapi", "uvicorn", "uvloop", "httptools", "numpy"].map(
      (name) => `usr/lib/python3/dist-packages/${name}`,
    ),
    megabytes: 20,
    install_command:
      "apt-get install python3-fastapi python3-uvicorn python3-uvloop python3-httptools " +
      "python3-numpy",
  },
  swift: {
    packages: ["swift-proxy", "swift-account", "swift-container", "swift-object", "memcached"],
    paths: [
      ...["proxy", "account", "container", "object"].map((name) => `usr/bin/swift-${name}-server`),
      "usr/bin/swift-ring-builder",
      "usr/lib/python3/dist-packages/swift",
      "usr/bin/memcached",
    ],
    megabytes: 15,
    install_command:
      "apt-get install swift-proxy swift-account swift-container swift-object memcached",
  },
  nginx: {
    packages: ["nginx-light"],
    paths: ["usr/sbin/nginx"],
    megabytes: 2,
    install_command: "apt-get install nginx-light",
  },
  // Only promtool is used, which checks metrics, rules and alerts.
  prometheus: {
    packages: ["prometheus"],
    paths: ["usr/bin/promtool"],
    megabytes: 45,
    install_command: "apt-get install prometheus",
  },
  shells: {
    packages: ["zsh", "fish"],
    paths: ["bin/zsh", "usr/bin/fish"],
    megabytes: 8,
    install_command: "apt-get install zsh fish",
  },
  redis: {
    packages: ["redis-server"],
    paths: ["usr/bin/redis-server"],
    megabytes: 2,
    install_command: "apt-get install redis-server",
  },
  postgresql: {
    packages: ["postgresql"],
    paths: ["usr/lib/postgresql/*/bin/initdb", "usr/share/postgresql/*/postgres.bki"],
    megabytes: 60,
    install_command: "apt-get install postgresql",
  },
  chromium: {
    packages: ["chromium-headless-shell", "fonts-inter", "fonts-dejavu-core"],
    paths: ["usr/lib/chromium/chromium-headless-shell"],
    megabytes: 110,
    install_command: "apt-get install chromium-headless-shell fonts-inter fonts-dejavu-core",
  },
}

/** Enough to download 110 MB at 2 Mbit/s, in milliseconds. */
const download_ms = 600_000

const treeFolder = (name) => join(cacheDirectory(), "trees", name)

/** The system that a tree was made for: another release has other libraries. */
const system = () => {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : ""
  const value = (key) => new RegExp(`^${key}="?([^"\n]*)"?$`, "m").exec(release)?.[1] ?? ""
  return `${value("ID")} ${value("VERSION_ID") || value("VERSION_CODENAME")} ${process.arch}\n`
}

const stampPath = (folder) => join(folder, ".system")

const isFitting = (folder) =>
  existsSync(stampPath(folder)) && readFileSync(stampPath(folder), "utf8") === system()

/**
 * Whether a path exists. A star matches any folder, because some packages have their version in it.
 */
const pathExists = (folder, path) => {
  const [before, ...after] = path.split("/*/")
  const start = join(folder, before)
  if (after.length === 0) return existsSync(start)
  return (
    existsSync(start) &&
    readdirSync(start).some((name) => pathExists(join(start, name), after.join("/*/")))
  )
}

/**
 * The folder of the tree: `/` if the system itself has everything; undefined if parts are missing.
 */
export const findTree = (name) => {
  const isWhole = (...folders) =>
    trees[name].paths.every((path) => folders.some((folder) => pathExists(folder, path)))
  if (isWhole("/")) return "/"
  const folder = treeFolder(name)
  return isFitting(folder) && isWhole(folder, "/") ? folder : undefined
}

const library_folders = ["usr/lib", "lib"].flatMap((lib) =>
  ["x86_64-linux-gnu", "aarch64-linux-gnu", "."].map((architecture) => join(lib, architecture)),
)

/** Packages with a library folder of their own; numpy's are `blas` and `lapack`. */
const own_folders = ["ceph", "pulseaudio", "blas", "lapack"]

const libraries = (folder) =>
  library_folders
    .map((path) => join(folder, path))
    .flatMap((path) => [path, ...own_folders.map((name) => join(path, name))])
    .filter((path) => existsSync(path))

/** The environment variables for the tree's programs; none if they are the system's. */
export const treeEnvironment = (folder, environment = process.env) => {
  if (folder === "/") return {}
  const bins = ["usr/bin", "usr/sbin", "bin", "sbin"].map((path) => join(folder, path))
  return {
    PATH: [...bins, environment.PATH ?? "/usr/bin:/bin"].join(":"),
    LD_LIBRARY_PATH: libraries(folder).join(":"),
    PYTHONPATH: join(folder, "usr/lib/python3/dist-packages"),
  }
}

const problemOf = ({ status, stderr, error }) =>
  status === 0
    ? undefined
    : (error?.message ?? /^E: (.+)$/m.exec(stderr ?? "")?.[1] ?? "apt failed")

/**
 * Downloads a tree into the cache; returns the reason if that fails. The tree appears in one step,
 * so that a partially unpacked one is never found.
 */
export const fetchTree = (name) =>
  withPrivateApt({ uses_system: true, label: name }, async (apt, folder) => {
    // A failing third-party source does not matter if all packages are found.
    const outdated = problemOf(await apt(["update"]))
    const options = ["--yes", "--download-only", "--no-install-recommends"]
    const install = ["install", ...options, ...trees[name].packages]
    const missing = problemOf(await apt(install, download_ms))
    if (missing) return outdated ?? missing
    const archives = join(folder, "cache/archives")
    const scratch = join(folder, "tree")
    mkdirSync(scratch)
    for (const file of readdirSync(archives).filter((entry) => entry.endsWith(".deb"))) {
      const { status } = await run("dpkg-deb", ["-x", join(archives, file), scratch], folder)
      if (status !== 0) return `${file} could not be unpacked`
    }
    writeFileSync(stampPath(scratch), system())
    mkdirSync(join(cacheDirectory(), "trees"), { recursive: true })
    rmSync(treeFolder(name), { recursive: true, force: true })
    renameSync(scratch, treeFolder(name))
    return findTree(name) ? undefined : "its packages lack required files"
  })
