/**
 * Blob storage's API: ClusterService. Whoever serves it adds BlobApi (`addHttpApi`), which a node
 * serves by handlers of its own.
 */
import { HttpApi } from "effect/http-api"
import { Cluster } from "#gateway/blob-storage/apis/cluster.ts"

export const BlobStorageApi = HttpApi.make("blob-storage").add(Cluster)
