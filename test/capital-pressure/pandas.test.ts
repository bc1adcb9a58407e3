import { agreementWithPandas } from "./pandas.ts"

// `npm test` does not bring pandas; it is compared with where it happens to be.
agreementWithPandas({ is_required: false })
