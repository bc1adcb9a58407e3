/** Where the demo model is: what predicts until an operator sets one. */
import { fileURLToPath } from "node:url"

/** Its file; its classes are beside it. It knows drawn leaves, and nothing that grows. */
export const demo_model = fileURLToPath(new URL("../../models/demo/model.json", import.meta.url))
