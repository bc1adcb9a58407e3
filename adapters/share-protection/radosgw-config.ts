/** What the three servers of a single-node S3 read: Ceph's configuration and its keys. */
import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { join } from "node:path"

export interface RadosgwConfig {
  /** Absolute path of a folder that is theirs alone. */
  readonly folder: string
  /** Folder of the tree that the programs are from; `/`: the system's own. */
  readonly tree: string
  readonly store: "memstore" | "bluestore"
  /** Identity of this cluster, a UUID. */
  readonly fsid: string
  /** Ports of 127.0.0.1: two of the monitor, for both versions of its protocol, and S3's. */
  readonly ports: readonly [v2: number, v1: number, s3: number]
  /** A second port of S3's, as RadosgwOptions say. */
  readonly quick_port?: number | undefined
}

/** Bytes of a store; one on disk is a sparse file. */
const store_bytes = 4_294_967_296

/** Where the monitor takes connections. */
export const monitorAddress = ([v2, v1]: RadosgwConfig["ports"]) =>
  `[v2:127.0.0.1:${v2},v1:127.0.0.1:${v1}]`

/**
 * ceph.conf: one copy of everything, and no manager. Paxos ticks of 50 ms instead of one second:
 * each of the gateway's eight pools waits for one, 2 s instead of 13 until it answers. One day of a
 * lifecycle rule lasts 10 s, the least time in the garbage 1 s.
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

/** Below it the server takes a bucket's name for a subdomain. */
const virtual_domain = "s3.local"

/**
 * Where the servers find their plugins, absolute: a release of Debian's has a default of its own
 * that is relative. Another system than Debian knows where it keeps them.
 */
const pluginFolders = (tree: string) => {
  const library = join(tree, "usr/lib", architectures[process.arch] ?? "")
  if (!existsSync(join(library, "rados-classes"))) return ""
  return `plugin dir = ${library}/ceph
erasure code dir = ${library}/ceph/erasure-code
osd class dir = ${library}/rados-classes
`
}

/** Debian's words for Node's. */
const architectures: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
}

export const keyringPath = (folder: string) => join(folder, "keyring")

/** Everybody's keys in one file: all of them are on this machine and of this user. */
export const keyring = (now_s: number) =>
  Object.entries(rights)
    .map(([name, lines]) => [`[${name}]`, `key = ${cephxKey(now_s)}`, ...lines].join("\n"))
    .join("\n")
    .concat("\n")

const rights: Readonly<Record<string, ReadonlyArray<string>>> = {
  "mon.": ['caps mon = "allow *"'],
  "osd.0": ['caps mon = "allow profile osd"', 'caps osd = "allow *"'],
  "client.rgw": ['caps mon = "allow *"', 'caps osd = "allow *"'],
}

const aes_key_bytes = 16

/** As ceph-authtool makes it: type AES, seconds and nanoseconds of its making, length, the key. */
const cephxKey = (now_s: number) => {
  const header = Buffer.alloc(12)
  header.writeUInt16LE(1, 0)
  header.writeUInt32LE(now_s, 2)
  header.writeUInt16LE(aes_key_bytes, 10)
  return Buffer.concat([header, randomBytes(aes_key_bytes)]).toString("base64")
}
