/**
 * Servers that are more than one file, out of Debian's archive: packages with all that they need
 * and this machine lacks, unpacked beside each other into the cache. Without root, and without
 * touching the system. The archive, its suite and its signatures are those of the machine's own
 * apt, since what is there already must fit what comes.
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
import { inPrivate, run } from "./debian.mjs"

/** Each with what must be there of it, in the tree or in the system. */
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
    by_hand: "apt-get install radosgw ceph-mon ceph-osd ceph-common",
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
    by_hand:
      "apt-get install python3-keystone python3-barbican python3-manila uwsgi-core " +
      "uwsgi-plugin-python3",
  },
  pandas: {
    packages: ["python3-pandas"],
    paths: ["usr/lib/python3/dist-packages/pandas", "usr/lib/python3/dist-packages/numpy"],
    megabytes: 25,
    by_hand: "apt-get install python3-pandas",
  },
  pillow: {
    packages: ["python3-pil"],
    paths: ["usr/lib/python3/dist-packages/PIL"],
    megabytes: 3,
    by_hand: "apt-get install python3-pil",
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
    by_hand:
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
    by_hand: "apt-get install swift-proxy swift-account swift-container swift-object memcached",
  },
  nginx: {
    packages: ["nginx-light"],
    paths: ["usr/sbin/nginx"],
    megabytes: 2,
    by_hand: "apt-get install nginx-light",
  },
  // Of it promtool alone is used, which judges metrics, rules and what they alert on.
  prometheus: {
    packages: ["prometheus"],
    paths: ["usr/bin/promtool"],
    megabytes: 45,
    by_hand: "apt-get install prometheus",
  },
  shells: {
    packages: ["zsh", "fish"],
    paths: ["bin/zsh", "usr/bin/fish"],
    megabytes: 8,
    by_hand: "apt-get install zsh fish",
  },
  redis: {
    packages: ["redis-server"],
    paths: ["usr/bin/redis-server"],
    megabytes: 2,
    by_hand: "apt-get install redis-server",
  },
  postgresql: {
    packages: ["postgresql"],
    paths: ["usr/lib/postgresql/*/bin/initdb", "usr/share/postgresql/*/postgres.bki"],
    megabytes: 60,
    by_hand: "apt-get install postgresql",
  },
  chromium: {
    packages: ["chromium-headless-shell", "fonts-inter", "fonts-dejavu-core"],
    paths: ["usr/lib/chromium/chromium-headless-shell"],
    megabytes: 110,
    by_hand: "apt-get install chromium-headless-shell fonts-inter fonts-dejavu-core",
  },
}

/** Milliseconds for a download of 110 MB: a line of 2 Mbit/s needs them. */
const download_ms = 600_000

const treeFolder = (name) => join(cacheDirectory(), "trees", name)

/** What a tree was made for: on another release it would meet other libraries. */
const system = () => {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : ""
  const value = (key) => new RegExp(`^${key}="?([^"\n]*)"?$`, "m").exec(release)?.[1] ?? ""
  return `${value("ID")} ${value("VERSION_ID") || value("VERSION_CODENAME")} ${process.arch}\n`
}

const stampPath = (folder) => join(folder, ".system")

const isFitting = (folder) =>
  existsSync(stampPath(folder)) && readFileSync(stampPath(folder), "utf8") === system()

/** Whether a path is there; a star in it is any folder: some packages have their version in it. */
const isThere = (folder, path) => {
  const [before, ...after] = path.split("/*/")
  const start = join(folder, before)
  if (after.length === 0) return existsSync(start)
  return (
    existsSync(start) &&
    readdirSync(start).some((name) => isThere(join(start, name), after.join("/*/")))
  )
}

/** Where the tree is: `/` where the system itself has it, undefined where nobody has. */
export const findTree = (name) => {
  const isWhole = (...folders) =>
    trees[name].paths.every((path) => folders.some((folder) => isThere(folder, path)))
  if (isWhole("/")) return "/"
  const folder = treeFolder(name)
  return isFitting(folder) && isWhole(folder, "/") ? folder : undefined
}

const library_folders = ["usr/lib", "lib"].flatMap((lib) =>
  ["x86_64-linux-gnu", "aarch64-linux-gnu", "."].map((architecture) => join(lib, architecture)),
)

/** Packages that keep libraries in a folder of their own: numpy's are `blas` and `lapack`. */
const own_folders = ["ceph", "pulseaudio", "blas", "lapack"]

const libraries = (folder) =>
  library_folders
    .map((path) => join(folder, path))
    .flatMap((path) => [path, ...own_folders.map((name) => join(path, name))])
    .filter((path) => existsSync(path))

/** The environment in which the tree's programs run; nothing of it is needed for the system's. */
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
 * Fetches a tree into the cache. Answers why it is missing, nothing when it is there. It appears
 * in one step: one that is half unpacked is never found.
 */
export const fetchTree = (name) =>
  inPrivate({ is_whole: true }, (apt, folder) => {
    // A source of somebody else's that fails is no matter if all is found nevertheless.
    const outdated = problemOf(apt(["update"]))
    const options = ["--yes", "--download-only", "--no-install-recommends"]
    const missing = problemOf(apt(["install", ...options, ...trees[name].packages], download_ms))
    if (missing) return outdated ?? missing
    const archives = join(folder, "cache/archives")
    const scratch = join(folder, "tree")
    mkdirSync(scratch)
    for (const file of readdirSync(archives).filter((entry) => entry.endsWith(".deb"))) {
      const { status } = run("dpkg-deb", ["-x", join(archives, file), scratch], folder)
      if (status !== 0) return `${file} could not be unpacked`
    }
    writeFileSync(stampPath(scratch), system())
    mkdirSync(join(cacheDirectory(), "trees"), { recursive: true })
    rmSync(treeFolder(name), { recursive: true, force: true })
    renameSync(scratch, treeFolder(name))
    return findTree(name) ? undefined : "its packages lack what is needed"
  })
