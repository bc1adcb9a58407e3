/** What the predictor and its threads say to each other. Buffers are moved, not copied. */
import { side } from "#schemas/image-side.ts"
import type { Pixels } from "./resample.ts"

/** Numbers of one image: 224 by 224 pixels of three colours. */
export const tensor_length = side * side * 3

/** The network, as far as a thread must know it. */
export interface Network {
  readonly onnx_path: string
  readonly input: {
    readonly name: string
    readonly layout: "NHWC" | "NCHW"
    /** Whether it divides bytes of colour itself. */
    readonly has_rescaling: boolean
  }
  readonly output: {
    readonly name: string
    readonly classes: number
    /** Of `none` the probabilities are the softmax; the others answer probabilities. */
    readonly activation: "softmax" | "sigmoid" | "none"
    /** Whether the network answers one number, the second class's. */
    readonly is_single?: boolean
  }
}

/** From where to where bytes of colour go. */
export type Scale = "0..1" | "-1..1" | "0..255"

export interface ThreadOptions {
  readonly network: Network
  /** Threads within one run of the network; 0: this one only prepares images. */
  readonly session_threads: number
  readonly batch_max: number
  readonly resize: "bicubic" | "bilinear" | "nearest" | "fast"
  readonly scale: Scale
  readonly auto_orient: boolean
  readonly pixels_max: number
}

/**
 * What the network is run with: a tensor float32[224, 224, 3] as it is, or as many bytes of RGB,
 * which the thread scales. Bytes are a quarter to hand about.
 */
export type Input = Float32Array | Uint8Array

export type Task =
  /** A file becomes 224 by 224 pixels or, where it `runs`, probabilities in one go. */
  | { readonly kind: "prepare"; readonly image: Uint8Array; readonly runs: boolean }
  | { readonly kind: "infer"; readonly inputs: ReadonlyArray<Input> }
  /** The same image with one square after the other hidden, from one number up to another. */
  | { readonly kind: "hide"; readonly rgb: Uint8Array; readonly from: number; readonly to: number }
  /** How much each square counts, over the image, as PNG. */
  | { readonly kind: "paint"; readonly rgb: Uint8Array; readonly drops: Float32Array }

/** What a file was. */
interface Seen {
  readonly width: Pixels["width"]
  readonly height: Pixels["height"]
  /** Of the file's bytes, in hex. */
  readonly sha256: string
}

export interface Prepared extends Seen {
  readonly kind: "prepared"
  /** 224 by 224 pixels. */
  readonly rgb: Uint8Array
}

export interface Predicted extends Seen {
  readonly kind: "predicted"
  /** Probabilities, or why there are none. */
  readonly row: Float32Array | string
}

export type Answer =
  | Prepared
  | Predicted
  /** By the tensor; where it is a text, that one came to nothing. */
  | { readonly kind: "inferred"; readonly outputs: ReadonlyArray<Float32Array | string> }
  | { readonly kind: "painted"; readonly png: Uint8Array }
  | {
      readonly kind: "refused"
      readonly problem: "type" | "size" | "content"
      readonly detail: string
    }
  | { readonly kind: "failed"; readonly detail: string }

/** What a thread says first, once it can work or cannot. */
export type Started =
  /** How many images it takes at once, at most `batch_max`; 0 without a session. */
  | { readonly kind: "ready"; readonly batch: number }
  | { readonly kind: "unusable"; readonly detail: string }

/** Squares of one row of an image that is explained, and of one column. */
export const squares_across = 7
export const squares = squares_across * squares_across

/** The last thing that a thread is told. */
export const end = "end"
