/** Configuration and keys for the three servers of a single-node S3 service (Ceph). */
import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { join } from "node:path"

export interface RadosgwConfig {
  /** Absolute path of their private folder. */
  readonly folder: string
  /** Root folder of the installed programs; `/` for the system's own. */
  readonly tree: string
  readonly store: "memstore" | "bluestore"
  /** Id of this cluster, a UUID. */
  readonly fsid: string
  /** Ports on 127.0.0.1: the monitor's two protocol versions, and S3. */
  readonly ports: readonly [v2: number, v1: number, s3: number]
  /** An additional S3 port, see RadosgwOptions. */
  readonly quick_port?: number | undefined
}

/** Size of the store in bytes; on disk it is a sparse file. */
const store_bytes = 4_294_967_296

/** The monitor's address. */
export const monitorAddress = ([v2, v1]: RadosgwConfig["ports"]) =>
  `[v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]`

/**
 * ceph.conf: a single replica and no manager. Paxos ticks of 50 ms instead of 1 s, because each of
 * the gateway's eight pools waits for one: startup takes 2 s instead of 13. A day of a lifecycle
 * rule lasts 10 s, and garbage collection waits 1 s.
 */
export const cephConf = ({
  folder,
  tree,
  store,
  fsid,
  ports,
  quick_port,
}: RadosgwConfig) => `[global]
fsid = ${fsid}
mon host = ${monitorAddress(ports)}
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
keyring = ${keyringPath(folder)}
auth allow insecure global id reclaim = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 500
mon data avail crit = 1
mon data avail warn = 1
mon warn on pool no redundancy = false
run dir = ${folder}
pid file =
admin socket =
log file = ${folder}/$name.log
crash dir = ${folder}
paxos propose interval = 0.05
paxos min wait = 0.01
osd max write size = 256
${pluginFolders(tree)}
[mon]
mon data = ${folder}/mon
mon cluster log file = ${folder}/cluster.log
[osd]
osd data = ${folder}/osd
osd objectstore = ${store}
memstore device bytes = ${store_bytes}
bluestore block size = ${store_bytes}
bluestore block create = true
bluestore fsck on mount = false
osd memory target = 939524096
osd op num threads per shard = 1
[client.rgw]
rgw data = ${folder}/rgw
rgw frontends = ${frontends(ports[2], quick_port)}
rgw enable usage log = false
rgw thread pool size = 64
rgw dns name = ${virtual_domain}
rgw lc debug interval = 10
rgw gc obj min wait = 1
`

const frontends = (port: number, quick_port: number | undefined) =>
  [
    `beast endpoint=127.0.0.1:${port}`,
    ...(quick_port === undefined ? [] : [`beast endpoint=127.0.0.1:${quick_port} tcp_nodelay=1`]),
  ].join(", ")

/** The domain whose subdomains the server treats as bucket names. */
const virtual_domain = "s3.local"

/**
 * Absolute plugin folders, because one Debian release has a relative default. Elsewhere the default
 * works.
 */
const pluginFolders = (tree: string) => {
  const library = join(tree, "usr/lib", architectures[process.arch] ?? "")
  if (!existsSync(join(library, "rados-classes"))) return ""
  return `plugin dir = ${library}/ceph
erasure code dir = ${library}/ceph/erasure-code
osd class dir = ${library}/rados-classes
`
}

/** Debian's names for Node's architectures. */
const architectures: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
}

export const keyringPath = (folder: string) => join(folder, "keyring")

/** The keys of all three servers in one file: all run on this machine as this user. */
export const keyring = (now_s: number) =>
  Object.entries(key_capabilities)
    .map(([name, lines]) => [`[${name}]`, `key = ${cephxKey(now_s)}`, ...lines].join("\n"))
    .join("\n")
    .concat("\n")

const key_capabilities: Readonly<Record<string, ReadonlyArray<string>>> = {
  "mon.": ['caps mon = "allow *"'],
  "osd.0": ['caps mon = "allow profile osd"', 'caps osd = "allow *"'],
  "client.rgw": ['caps mon = "allow *"', 'caps osd = "allow *"'],
}

const aes_key_bytes = 16

/**
 * A key in the format of ceph-authtool: type AES, creation time in seconds and nanoseconds, length,
 * key.
 */
const cephxKey = (now_s: number) => {
  const header = Buffer.alloc(12)
  header.writeUInt16LE(1, 0)
  header.writeUInt32LE(now_s, 2)
  header.writeUInt16LE(aes_key_bytes, 10)
  return Buffer.concat([header, randomBytes(aes_key_bytes)]).toString("base64")
}
