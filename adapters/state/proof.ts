/**
 * Verifies a state backup before it is used: every byte, the hash chain of each aggregate, and the
 * Merkle tree over all commits with its signed head.
 *
 * Source: docs/decisions/0132 and 0143.
 */
import { createPublicKey, verify } from "node:crypto"
import { Effect, Schema } from "effect"
import { generation_stream } from "#actors/system/generation.ts"
import {
  empty_tree,
  leafOf,
  makeTreeBuilder,
  openTree,
  rootOf,
  sealedTree,
} from "#actors/system/tree.ts"
import { exclusionOf } from "#adapters/state/files.ts"
import { type StateStore, StateUnusable, unusable } from "#adapters/state/store.ts"
import { decodeBytes, parseMessages } from "#adapters/state/stream-copy.ts"
import { CommitJudge, type Entry, isReadable, type Judge } from "#events/log.ts"
import { GenerationEvent } from "#events/system/generation.ts"
import type { GenerationsOptions } from "#journal"
import { decode, digest, firstGeneration, nextGeneration, sha256 } from "#journal"
import { causeText } from "#schemas/cause-text.ts"
import type { StateManifest, StoredLog, StoredStream } from "#schemas/system/state-backup.ts"

/** The generation whose stream is in a backup. */
export const generationOf = (name: string, { generation, base, copies }: StoredLog) =>
  generation === 1
    ? firstGeneration(name)
    : nextGeneration(name, { ...firstGeneration(name), number: generation - 1 }, base, copies)

/** The messages of a stream, in order; throws StateUnusable for a damaged file. */
export async function* messagesOf(store: StateStore, { parts }: StoredStream) {
  for (const part of parts) {
    try {
      yield* parseMessages(store.read(part))
    } catch (cause) {
      throw cause instanceof StateUnusable
        ? cause
        : unusable(`${part.path} in ${store.folder} is damaged: ${causeText(cause)}.`)
    }
  }
}

/** The DER of an Ed25519 public key before its 32 bytes. Source: RFC 8410. */
const der_head = Buffer.from("302a300506032b6570032100", "hex")

/** Bytes before the signature in a signed note, and before the key in its verifier. */
const id_bytes = 4
const mark_bytes = 1

/** Verifies the signature of a signed note, in the formats of decision 0132. */
const isSignedBy = (verifier: string, note: string) => {
  const text = note.slice(0, note.indexOf("\n\n") + 1)
  const signature = Buffer.from(note.trimEnd().split(" ").at(-1) ?? "", "base64")
  // The name and id contain no plus sign, but base64 may.
  const raw = Buffer.from(verifier.split("+").slice(2).join("+"), "base64")
  try {
    const der = Buffer.concat([der_head, raw.subarray(mark_bytes)])
    const key = createPublicKey({ key: der, format: "der", type: "spki" })
    return verify(null, Buffer.from(text), key, signature.subarray(id_bytes))
  } catch {
    return false
  }
}

/** Checks that each commit continues the hash chain of its aggregate. */
const chainChecker = (base: number) => {
  const last = new Map<string, string>()
  return (entry: Entry) => {
    const { position, stream, hash } = entry
    const before = last.get(stream) ?? sha256(stream)
    // The predecessor of a copy is in the previous generation.
    if (position > base && isReadable(entry) && entry.commit.prev !== before) {
      throw unusable(`The commit at ${position} does not follow its aggregate's previous commit.`)
    }
    last.set(stream, hash)
  }
}

const decodeGeneration = Schema.decodeUnknownSync(GenerationEvent)

/** The event in the first commit of a generation, which describes the previous one. */
const generationEvent = (entry: Entry, { generation }: StoredLog) => {
  const { stream } = entry
  const event = isReadable(entry) ? entry.commit.events.at(-1) : undefined
  if (stream === generation_stream && event !== undefined) return decodeGeneration(event)
  throw unusable(`Generation ${generation} of the log has an invalid start.`)
}

/** Verifies the archives of earlier generations and their indexes. */
export const verifyArchives = (
  { files, log: { generation } }: Pick<StateManifest, "files" | "log">,
  { archive }: GenerationEvent,
) => {
  const found = new Map(files.map(({ path, sha256 }) => [path, sha256]))
  for (let number = 1; number < generation; number++) {
    const index = `log/generation-${number}.json`
    if (!found.has(index))
      throw unusable(`${index} is missing; the archive cannot be read without it.`)
    const path = `log/generation-${number}.ndjson.gz`
    const is_last = number === generation - 1
    if (is_last ? found.get(path) !== archive.sha256 : !found.has(path)) {
      throw unusable(
        `${path} is not the archive that generation ${number + 1} of the log refers to.`,
      )
    }
  }
}

const verifyLog = async (
  store: StateStore,
  manifest: StateManifest,
  head: string,
  judge: Judge,
) => {
  const { log } = manifest
  const { base, copies, last } = log
  const checkChain = chainChecker(base)
  let growth = makeTreeBuilder(digest, empty_tree)
  let next = base - copies + 1
  let unreadable = 0
  for await (const { sequence, subject, ...content } of messagesOf(store, log)) {
    if (sequence !== next++) throw unusable(`The log has no commit at ${next - 1}.`)
    const stream = subject.slice(head.length + 1)
    const entry = decode(sequence, stream, decodeBytes(content), judge)
    if (!isReadable(entry)) unreadable++
    checkChain(entry)
    if (sequence <= base) continue
    if (sequence === base + 1 && base > 0) {
      const event = generationEvent(entry, log)
      verifyArchives(manifest, event)
      growth = makeTreeBuilder(digest, openTree(event.tree))
    }
    growth.add(leafOf(digest, entry))
  }
  const tree = growth.tree()
  const is_same = JSON.stringify(sealedTree(tree)) === JSON.stringify(log.tree)
  if (!is_same || next !== last + 1) {
    throw unusable("The log does not match the tree in the manifest.")
  }
  if (!isHeadOf(log, Buffer.from(rootOf(digest, tree)).toString("base64"))) {
    throw unusable("The signed head does not match the log.")
  }
  return { unreadable }
}

const isHeadOf = ({ head, key, last }: StoredLog, root: string) =>
  head.split("\n").slice(1, 3).join() === `${last},${root}` && isSignedBy(key, head)

const verifyOrder = async (store: StateStore, label: string, stored: StoredStream) => {
  let messages = 0
  let last = 0
  for await (const { sequence } of messagesOf(store, stored)) {
    if (sequence <= last) throw unusable(`${label} are out of order at ${sequence}.`)
    last = sequence
    messages++
  }
  if (messages !== stored.messages) {
    throw unusable(`${label}: ${messages} instead of ${stored.messages}.`)
  }
}

/** Reads to the end, where a checksum error is thrown. */
const readAll = async (pieces: AsyncIterable<Uint8Array>) => {
  let bytes = 0
  for await (const { length } of pieces) bytes += length
  return bytes
}

/**
 * Verifies a whole backup and counts the unreadable entries of its newest generation, which are
 * copied unchanged. Fails with StateUnusable, which names the first damaged file.
 */
export const verifyState = (
  store: StateStore,
  manifest: StateManifest,
  { name }: GenerationsOptions,
) =>
  Effect.flatMap(CommitJudge, (judge) =>
    Effect.tryPromise({
      try: async () => {
        for (const file of manifest.files) {
          const [top = ""] = file.path.split("/")
          if (exclusionOf(top) !== undefined)
            throw unusable(`${file.path} is not a file of a backup.`)
          await readAll(store.read(file))
        }
        const result = await verifyLog(
          store,
          manifest,
          generationOf(name, manifest.log).head,
          judge,
        )
        await verifyOrder(store, "Published events", manifest.events)
        await verifyOrder(store, "Cursors of webhooks", manifest.webhooks)
        return result
      },
      catch: (cause) =>
        cause instanceof StateUnusable ? cause : unusable(`${store.folder}: ${causeText(cause)}`),
    }),
  )
