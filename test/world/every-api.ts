/** The APIs of all services and of the process. */
import type { HttpApi } from "effect/http-api"
import { BlobApi } from "#gateway/blob-storage/apis/blobs.ts"
import { BlobStorageApi } from "#gateway/blob-storage/apis/cluster.ts"
import { CapitalPressureApi } from "#gateway/capital-pressure/api.ts"
import { CarrierSearchApi } from "#gateway/carrier-search/api.ts"
import { PlantDiseaseApi } from "#gateway/plant-disease/api.ts"
import { served } from "#gateway/share-protection/routes.ts"
import type { shape_a } from "#gateway/share-protection/shapes/shape-a.ts"
import { SystemApi } from "#gateway/system/apis/api.ts"
import { HealthApi } from "#gateway/system/apis/health.ts"
import { OperationsApi } from "#gateway/system/apis/operations.ts"

/** With this shape of share protection. */
export const apisOf = (shape: typeof shape_a): ReadonlyArray<HttpApi.Constraint> => [
  served(shape).api,
  BlobStorageApi,
  BlobApi,
  CapitalPressureApi,
  CarrierSearchApi,
  PlantDiseaseApi,
  HealthApi,
  SystemApi,
  OperationsApi,
]
