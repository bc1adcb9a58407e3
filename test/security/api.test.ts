/** Every operation of Shape A: who may call it, and its responses to generated requests. */
import { describeWithServer } from "../world/programs/nats.ts"
import { everyOperation } from "./api-access.ts"

const runs = 9

describeWithServer("every operation of Shape A", () => everyOperation("A", runs))
