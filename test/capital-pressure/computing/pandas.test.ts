import { agreementWithPandas } from "../../world/capital-pressure/pandas.ts"

// `npm test` does not bring pandas; it is compared with where it happens to be.
agreementWithPandas({ is_required: false })
