/**
 * Whether a backup of state is what it was, before anything is made of it: every byte, the chain of
 * each aggregate, and the tree over all commits with its signed head.
 *
 * Source: docs/decisions/0132 and 0143.
 */
import { createPublicKey, verify } from "node:crypto"
import { Effect, Schema } from "effect"
import { generation_stream } from "#actors/system/generation.ts"
import { empty_tree, growing, leafOf, openTree, rootOf, sealedTree } from "#actors/system/tree.ts"
import { leftOf } from "#adapters/state/files.ts"
import { type StateStore, StateUnusable, unusable } from "#adapters/state/store.ts"
import { bytesSaid, unpackedMessages } from "#adapters/state/stream-copy.ts"
import { CommitJudge, type Entry, isReadable, type Judge } from "#events/log.ts"
import { GenerationEvent } from "#events/system/generation.ts"
import type { GenerationsOptions } from "#journal"
import { decode, digest, firstGeneration, nextGeneration, sha256 } from "#journal"
import { causeText } from "#schemas/cause-text.ts"
import type { StateManifest, StoredLog, StoredStream } from "#schemas/system/state-backup.ts"

/** The generation whose stream a backup holds. */
export const generationOf = (name: string, { generation, base, copies }: StoredLog) =>
  generation === 1
    ? firstGeneration(name)
    : nextGeneration(name, { ...firstGeneration(name), number: generation - 1 }, base, copies)

/** The messages of a stream, in order; throws StateUnusable of what is damaged. */
export async function* messagesOf(store: StateStore, { parts }: StoredStream) {
  for (const part of parts) {
    try {
      yield* unpackedMessages(store.read(part))
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

/** Whether a signed note was signed with a key, both as 0132 has them. */
const isSignedBy = (verifier: string, note: string) => {
  const text = note.slice(0, note.indexOf("\n\n") + 1)
  const signature = Buffer.from(note.trimEnd().split(" ").at(-1) ?? "", "base64")
  // The name and its id have no plus; base64 may.
  const raw = Buffer.from(verifier.split("+").slice(2).join("+"), "base64")
  try {
    const der = Buffer.concat([der_head, raw.subarray(mark_bytes)])
    const key = createPublicKey({ key: der, format: "der", type: "spki" })
    return verify(null, Buffer.from(text), key, signature.subarray(id_bytes))
  } catch {
    return false
  }
}

/** The chain of each aggregate, which a commit must go on. */
const chains = (base: number) => {
  const last = new Map<string, string>()
  return (entry: Entry) => {
    const { position, stream, hash } = entry
    const before = last.get(stream) ?? sha256(stream)
    // What a copy goes on is in the generation before.
    if (position > base && isReadable(entry) && entry.commit.prev !== before) {
      throw unusable(`The commit at ${position} does not follow its aggregate's last one.`)
    }
    last.set(stream, hash)
  }
}

const decodeGeneration = Schema.decodeUnknownSync(GenerationEvent)

/** What the first commit of a generation says of those before it. */
const begun = (entry: Entry, { generation }: StoredLog) => {
  const { stream } = entry
  const event = isReadable(entry) ? entry.commit.events.at(-1) : undefined
  if (stream === generation_stream && event !== undefined) return decodeGeneration(event)
  throw unusable(`Generation ${generation} of the log does not begin as one.`)
}

/** Files of the generations before, with their indexes, which are part of the log. */
export const proveArchives = (
  { files, log: { generation } }: Pick<StateManifest, "files" | "log">,
  { archive }: GenerationEvent,
) => {
  const found = new Map(files.map(({ path, sha256 }) => [path, sha256]))
  for (let number = 1; number < generation; number++) {
    const index = `log/generation-${number}.json`
    if (!found.has(index)) throw unusable(`${index} is missing, without which there is no archive.`)
    const path = `log/generation-${number}.ndjson.gz`
    const is_last = number === generation - 1
    if (is_last ? found.get(path) !== archive.sha256 : !found.has(path)) {
      throw unusable(`${path} is not the one that generation ${number + 1} of the log names.`)
    }
  }
}

const proveLog = async (store: StateStore, manifest: StateManifest, head: string, judge: Judge) => {
  const { log } = manifest
  const { base, copies, last } = log
  const follows = chains(base)
  let growth = growing(digest, empty_tree)
  let next = base - copies + 1
  let unreadable = 0
  for await (const { sequence, subject, ...said } of messagesOf(store, log)) {
    if (sequence !== next++) throw unusable(`The log has no commit at ${next - 1}.`)
    const stream = subject.slice(head.length + 1)
    const entry = decode(sequence, stream, bytesSaid(said), judge)
    if (!isReadable(entry)) unreadable++
    follows(entry)
    if (sequence <= base) continue
    if (sequence === base + 1 && base > 0) {
      const event = begun(entry, log)
      proveArchives(manifest, event)
      growth = growing(digest, openTree(event.tree))
    }
    growth.add(leafOf(digest, entry))
  }
  const tree = growth.tree()
  const is_same = JSON.stringify(sealedTree(tree)) === JSON.stringify(log.tree)
  if (!is_same || next !== last + 1) {
    throw unusable("The log is not the one that the manifest's tree is of.")
  }
  if (!isHeadOf(log, Buffer.from(rootOf(digest, tree)).toString("base64"))) {
    throw unusable("The signed head is not that of the log.")
  }
  return { unreadable }
}

const isHeadOf = ({ head, key, last }: StoredLog, root: string) =>
  head.split("\n").slice(1, 3).join() === `${last},${root}` && isSignedBy(key, head)

const proveOrder = async (store: StateStore, called: string, stored: StoredStream) => {
  let messages = 0
  let last = 0
  for await (const { sequence } of messagesOf(store, stored)) {
    if (sequence <= last) throw unusable(`${called} are not in order at ${sequence}.`)
    last = sequence
    messages++
  }
  if (messages !== stored.messages) {
    throw unusable(`${called} are ${messages}, and not ${stored.messages}.`)
  }
}

/** Reads all of it, for what is thrown at its end. */
const drained = async (pieces: AsyncIterable<Uint8Array>) => {
  let bytes = 0
  for await (const { length } of pieces) bytes += length
  return bytes
}

/**
 * Reads all of a backup and counts the commits of its newest generation that cannot be read: they
 * are copied as they are. StateUnusable names the first file that is not what it was.
 */
export const proveState = (
  store: StateStore,
  manifest: StateManifest,
  { name }: GenerationsOptions,
) =>
  Effect.flatMap(CommitJudge, (judge) =>
    Effect.tryPromise({
      try: async () => {
        for (const file of manifest.files) {
          const [top = ""] = file.path.split("/")
          if (leftOf(top) !== undefined) throw unusable(`${file.path} is none that a backup keeps.`)
          await drained(store.read(file))
        }
        const proven = await proveLog(store, manifest, generationOf(name, manifest.log).head, judge)
        await proveOrder(store, "Published events", manifest.events)
        await proveOrder(store, "Cursors of webhooks", manifest.webhooks)
        return proven
      },
      catch: (cause) =>
        cause instanceof StateUnusable ? cause : unusable(`${store.folder}: ${causeText(cause)}`),
    }),
  )
