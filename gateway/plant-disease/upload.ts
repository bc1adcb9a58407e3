/**
 * Reads the images of a form into memory as they arrive. Each image has a size limit, and so do all
 * arriving images together. Nothing is written to disk.
 *
 * Source: decisions of document 3, plant errors; RFC 7578.
 */
import { Effect, type Scope, Stream } from "effect"
import { type HttpServerRequest, MultipartParser } from "effect/http"
import { Busy } from "#actors/plant-disease/predictor.ts"
import { extensions, part_types } from "#schemas/plant-disease/image.ts"
import { BadForm, ImageTooLarge, NoImage } from "#schemas/plant-disease/rejection.ts"

/** Maximum size of a form without its images: headers of parts, and unknown fields. */
export const form_bytes_max = 64 * 1024
/** A browser's form has only a few. */
const other_fields_max = 16
const field_bytes_max = 16 * 1024
/**
 * Maximum size of all images that are arriving in this process: by default a dozen of the largest.
 */
const all_bytes_max = 256 * 2 ** 20
/** Initial size of a buffer; most images of a leaf fit. */
const first_bytes = 64 * 1024
/** Maximum length of a stored name. The extension comes from the full name, of up to 16 KiB. */
const name_chars_max = 255
/** Maximum length of a type or extension in an error; all valid ones are shorter. */
const quoted_chars_max = 100

/** The rejection of a form, or of a file in it. */
type Refusal = BadForm | ImageTooLarge | NoImage

/** One file of the form: its bytes, or its rejection. */
export interface Upload {
  readonly name: string
  /** Fills its buffer; empty if the file is rejected. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly refusal: ImageTooLarge | NoImage | undefined
}

export interface UploadLimits {
  readonly files_max: number
  readonly image_bytes_max: number
  /** The error for a form without a file, or with too many. */
  readonly wrong_number: string
}

type Request = HttpServerRequest.HttpServerRequest

/**
 * Reads the files in the order of the form. Their bytes count against the limit until the scope
 * closes.
 */
export type ReadForm = (
  request: Request,
  limits: UploadLimits,
) => Effect.Effect<Stream.Stream<Upload, Refusal | Busy>, Refusal, Scope.Scope>

const no_form = "The body must be multipart/form-data with the image in the field 'file'."
const malformed = new BadForm({ error: "The form is malformed or incomplete." })
const no_boundary = new BadForm({
  error: "The Content-Type of the form has no boundary parameter.",
})
const busy = new Busy({
  detail: "The server is receiving too many images. Try again.",
  retry_after_seconds: 1,
})

const tooLarge = (bytes_max: number) => {
  const mebibytes = bytes_max / 2 ** 20
  const size = Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes_max} bytes`
  return new ImageTooLarge({ error: `The image is larger than ${size}.` })
}

const shortened = (text: string) =>
  text.length > quoted_chars_max ? `${text.slice(0, quoted_chars_max)}...` : text

/** The extension after the last dot, in lower case; empty if there is none. */
const endingOf = (name: string) => /\.([^./\\]*)$/.exec(name)?.[1]?.toLowerCase() ?? ""

/** The rejection of a file whose declared type or extension is not supported. */
const misdeclared = (type: string, name: string): NoImage | undefined => {
  if (!part_types.includes(type)) {
    const types = part_types.join(", ")
    return new NoImage({
      error: `The file's type is ${shortened(type)}. Accepted types: ${types}.`,
    })
  }
  const ending = endingOf(name)
  if (ending === "" || extensions.includes(ending)) return undefined
  const endings = extensions.join(", ")
  return new NoImage({
    error: `The file name ends in .${shortened(ending)}. Accepted extensions: ${endings}.`,
  })
}

/** Collects pieces in one buffer that doubles, so they take at most twice their size. */
const growingBuffer = (bytes_max: number) => {
  let buffer = new Uint8Array(0)
  let length = 0
  return {
    length: () => length,
    /** Returns false and discards everything if there are too many bytes. */
    add: (piece: Uint8Array) => {
      const needed = length + piece.length
      if (needed > bytes_max) {
        buffer = new Uint8Array(0)
        return false
      }
      if (needed > buffer.length) {
        const larger = new Uint8Array(Math.max(needed, buffer.length * 2, first_bytes))
        larger.set(buffer.subarray(0, length))
        buffer = larger
      }
      buffer.set(piece, length)
      length = needed
      return true
    },
    take: () => {
      const whole = buffer.length === length ? buffer : buffer.slice(0, length)
      buffer = new Uint8Array(0)
      return whole
    },
  }
}

/** A parser of one form: it takes pieces, and returns files once they are complete. */
const formParser = (
  headers: Readonly<Record<string, string>>,
  { files_max, image_bytes_max, wrong_number }: UploadLimits,
) => {
  let refusal: Refusal | undefined
  let is_done = false
  let file_count = 0
  let whole: Array<Upload> = []

  const file = (info: MultipartParser.PartInfo) => {
    const { filename = "" } = info
    const name = filename.slice(0, name_chars_max)
    const is_none = info.filename === ""
    let refused = misdeclared(info.contentType, filename)
    if (info.name !== "file") {
      const error = `The image must be in the field 'file', not '${shortened(info.name)}'.`
      refusal ??= new BadForm({ error })
    }
    const gathered = growingBuffer(refused === undefined ? image_bytes_max : 0)
    return (piece: Uint8Array | null) => {
      if (piece !== null) {
        if (!gathered.add(piece)) refused ??= tooLarge(image_bytes_max)
        return
      }
      // Browsers send an empty file without a name if none was chosen.
      if (is_none && gathered.length() === 0) return
      file_count++
      if (file_count > files_max) refusal ??= new BadForm({ error: wrong_number })
      else whole.push({ name, bytes: gathered.take(), refusal: refused })
    }
  }
  const failed = (error: MultipartParser.MultipartError) => {
    if (error._tag === "InvalidBoundary") refusal ??= no_boundary
    else if (error._tag !== "ReachedLimit") refusal ??= malformed
    else if (error.limit === "MaxTotalSize") refusal ??= tooLarge(image_bytes_max)
    else refusal ??= new BadForm({ error: "The form has too many fields, or one is too long." })
  }
  const parser = MultipartParser.make({
    headers: { ...headers },
    maxParts: files_max + other_fields_max,
    maxFieldSize: field_bytes_max,
    maxTotalSize: files_max * image_bytes_max + form_bytes_max,
    // A part without a filename is an unknown field.
    isFile: ({ filename, contentType }) => filename !== undefined || contentType !== "text/plain",
    onField: () => undefined,
    onFile: file,
    onError: failed,
    onDone: () => {
      is_done = true
    },
  })
  const takeFiles = (): Effect.Effect<ReadonlyArray<Upload>, Refusal> => {
    if (refusal !== undefined) return Effect.fail(refusal)
    const files = whole
    whole = []
    return Effect.succeed(files)
  }
  return {
    write: (piece: Uint8Array) => {
      if (!is_done && refusal === undefined) parser.write(piece)
      return takeFiles()
    },
    end: () => {
      if (!is_done) parser.end()
      if (file_count === 0) refusal ??= new BadForm({ error: wrong_number })
      return takeFiles()
    },
  }
}

/** The rejection of a wrong type; a request without a body lacks the image instead. */
const refusedType = ({ headers }: Request, wrong_number: string): Refusal | undefined => {
  const type = headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? ""
  if (type === "multipart/form-data") return undefined
  const is_empty =
    headers["transfer-encoding"] === undefined && !(Number(headers["content-length"]) > 0)
  return is_empty ? new BadForm({ error: wrong_number }) : new NoImage({ error: no_form })
}

/** Reads forms within the limits of each one and of all together. */
export const formReader = (held_bytes_max = all_bytes_max): ReadForm => {
  let held_bytes = 0
  const holding = Effect.acquireRelease(
    Effect.sync(() => ({ bytes: 0 })),
    (own) =>
      Effect.sync(() => {
        held_bytes -= own.bytes
      }),
  )
  return Effect.fnUntraced(function* (request, limits) {
    const refused = refusedType(request, limits.wrong_number)
    if (refused !== undefined) return yield* Effect.fail(refused)
    const own = yield* holding
    const { write, end } = formParser(request.headers, limits)
    // One image is always accepted, however large the settings allow it to be.
    const bytes_max = Math.max(held_bytes_max, limits.image_bytes_max + form_bytes_max)
    const files = request.stream.pipe(
      Stream.mapError((): Refusal | Busy => malformed),
      Stream.mapEffect((piece): Effect.Effect<ReadonlyArray<Upload>, Refusal | Busy> => {
        own.bytes += piece.length
        held_bytes += piece.length
        return held_bytes > bytes_max ? Effect.fail(busy) : write(piece)
      }),
    )
    return Stream.concat(files, Stream.fromEffect(Effect.suspend(end))).pipe(
      Stream.flatMap(Stream.fromIterable),
    )
  })
}
