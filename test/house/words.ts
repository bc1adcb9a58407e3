/**
 * The words and patterns that the project's prose avoids, as data: each with the words to use, an
 * example that it finds, and, where a word has a proper meaning too, an example that it permits.
 */
import type { Kind } from "./prose.ts"

export interface WordRule {
  readonly pattern: RegExp
  readonly use: string
  readonly finds: string
  readonly permits?: string
  /** The rule applies only to these kinds of prose. */
  readonly kinds?: ReadonlyArray<Kind>
}

/** The start of a sentence: of the passage, or after the end of another sentence. */
const start = "(?:^|[.:;!?] |\\()"

/** Words for private ideas. Each has a term of the field. */
const private_terms: ReadonlyArray<WordRule> = [
  {
    pattern: /\b(kept answers?|hot door)\b/i,
    use: "response cache, fast path",
    finds: "It is served from the kept answers.",
  },
  {
    pattern: /\b((?<!Pepper,? )bells?|warmth|forsak\w+|ebb)\b/i,
    use: "signal, access frequency, discard, drain",
    finds: "The bell rings.",
    permits: "Pepper, bell: Bacterial spot",
  },
  {
    pattern: /\bdesks?\b/i,
    use: "server (of an RPC between threads)",
    finds: "The desk answers requests of the threads.",
  },
  {
    pattern: /\b(papers|ears?|hearts?)\b/i,
    use: "credentials; listener or parser; heartbeat",
    finds: "A worker's papers",
    permits: "The heartbeat of a worker, and its year",
  },
  {
    pattern: /\btakes? back\b|\btaken back\b/i,
    use: "roll back, discard",
    finds: "A failed put takes back its shards.",
  },
  { pattern: /\blets? go\b/i, use: "release, discard", finds: "The lock is let go." },
  {
    pattern: /\b(tells?|told|telling)\b/i,
    use: "report, show, notify, distinguish",
    finds: "The operator is told of it.",
  },
  {
    pattern: /\bfor ever\b|\banew\b|\bmend(s|ed|ing)?\b|\bwithout a word\b/i,
    use: "permanently; again or from scratch; repair or fix; silently",
    finds: "The table is made anew.",
  },
  {
    pattern: /\b(who|what|which)ever\b/i,
    use: "name the thing; any, regardless of, every client that",
    finds: "It is refused, whatever the host name.",
  },
  { pattern: /(?<!as )\bnobody\b/i, use: "no one, or name who", finds: "Nobody reads it." },
  {
    pattern: /\b(at most|of) so many\b|\bso many (rows|bytes|items|days|seconds)\b/i,
    use: "Maximum number of, the number of",
    finds: "At most so many",
  },
  { pattern: /\bbesides?\b/i, use: "next to, plus, in addition to", finds: "Kept beside the data" },
  {
    pattern: /(?<!encrypt\w* (?:\w+ )?)\bat rest\b/i,
    use: "idle, quiescent",
    finds: "A server at rest",
    permits: "Encryption at rest is the disk's task.",
  },
  {
    pattern: /\b(is|are|was|were|be|been) (not |already |still |all )?(there|away)(?=[.,;:)]|$)/i,
    use: "exists, is missing, is offline",
    finds: "Nothing happens while the node is away.",
    permits: "There is a log.",
  },
  {
    pattern: /\bverbs?\b(?!,? (object|and aggregate))/i,
    use: "command (of the command line), method (of HTTP)",
    finds: "Each verb has an example.",
    permits: "Subject, verb, object",
  },
  {
    pattern: /\bas (it|they) stands?\b|\b(stands|stood)\b(?! (for|in for|by|out)\b)/i,
    use: "is, is stored, is listed; as is",
    finds: "A process of which a part stands",
    permits: "The brand stands for the first half of a digest.",
  },
  {
    pattern: /\b(has|have|had) (no|what|nothing) [^.]{0,30}\b(shown|said|asked|told)\b/i,
    use: "a verb in the active voice",
    finds: "It has what it needs said.",
  },
]

/** Shapes of sentences that read like a translation. */
const shapes: ReadonlyArray<WordRule> = [
  {
    pattern: new RegExp(`${start}(What|Who|Whose|That which) [^.?!:]*([.!]|: |$)`),
    use: "a noun as the subject: name the thing",
    finds: "What was put last is reported first.",
    permits: "What is a blob?",
  },
  {
    pattern: new RegExp(`${start}(It|This) is (told|said|asked|shown)\\b`),
    use: "the active voice with its subject",
    finds: "It is said on standard error.",
  },
]

export const word_rules: ReadonlyArray<WordRule> = [...private_terms, ...shapes]

/** Names in code for private ideas; the terms above replace them. */
export const private_names = new RegExp(
  [
    String.raw`(^|_|\b)(told|telling|bell|ebb|desk|warmth|forsake\w*|papers)(_|\b)`,
    "[a-z](Told|Bell|Desk|Warmth|Papers)(?![a-z])",
  ].join("|"),
)
