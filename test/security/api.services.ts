/** Every operation of Shape B: who may ask it, and what is sent to it. */
import { describeWithServer } from "../world/programs/nats.ts"
import { everyOperation } from "./api-access.ts"

const runs = 20

describeWithServer("every operation of Shape B", () => everyOperation("B", runs))
