/** What the predictor and its threads say to each other. Buffers are moved, not copied. */
import type { Pixels } from "#adapters/plant-resample.ts"

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
  }
}

export interface ThreadOptions {
  readonly network: Network
  /** Threads within one run of the network; 0: this one only prepares images. */
  readonly session_threads: number
  readonly batch_max: number
  readonly resize: "bicubic" | "bilinear" | "nearest" | "fast"
  readonly scale: "0..1" | "-1..1" | "0..255"
  readonly auto_orient: boolean
  readonly pixels_max: number
}

export type Task =
  /** A file becomes a tensor; with its small pixels, if wanted. */
  | { readonly kind: "prepare"; readonly image: Uint8Array; readonly with_pixels: boolean }
  /** Tensors float32[224, 224, 3] become probabilities, together. */
  | { readonly kind: "infer"; readonly tensors: ReadonlyArray<Float32Array> }
  /** The same image with one square after the other hidden, from one number up to another. */
  | { readonly kind: "hide"; readonly rgb: Uint8Array; readonly from: number; readonly to: number }
  /** How much each square counts, over the image, as PNG. */
  | { readonly kind: "paint"; readonly rgb: Uint8Array; readonly drops: Float32Array }

export interface Prepared {
  readonly kind: "prepared"
  readonly tensor: Float32Array
  /** 224 by 224 pixels, if they were wanted. */
  readonly small: Uint8Array | undefined
  readonly width: Pixels["width"]
  readonly height: Pixels["height"]
  /** Of the file's bytes, in hex. */
  readonly sha256: string
}

export type Answer =
  | Prepared
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
  | { readonly kind: "ready" }
  | { readonly kind: "unusable"; readonly detail: string }

/** Squares of one row of an image that is explained, and of one column. */
export const squares_across = 7
export const squares = squares_across * squares_across

/** The last thing that a thread is told. */
export const end = "end"
