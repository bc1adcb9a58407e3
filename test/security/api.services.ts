/** Every operation of Shape B: who may call it, and its responses to generated requests. */
import { describeWithServer } from "../world/programs/nats.ts"
import { everyOperation } from "./api-access.ts"

const runs = 20

describeWithServer("every operation of Shape B", () => everyOperation("B", runs))
