/**
 * ONNX Runtime without its telemetry. By default its Linux builds write an identifier of the
 * machine to the user's cache folder, and send facts about models and processors to Microsoft.
 *
 * Source: decision 0201.
 */
import { InferenceSession, Tensor } from "onnxruntime-node"

// Read when the first session is created, not when the library is loaded. A worker thread cannot
// set it for the process, so the main thread imports this module before it starts such a thread.
process.env.ORT_DISABLE_TELEMETRY = "1"

export { InferenceSession, Tensor }
