import type { Random } from '../platform/random.ts'
import type { BlobStore } from './port.ts'

/** Location of an S3-compatible storage, and credentials that can read, write, list and delete only in this bucket. */
export interface S3Settings {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** The blob port on an S3-compatible storage. The client is imported only when used, because it takes about 10 MB of memory. */
export async function openS3Blobs(
  settings: S3Settings,
  own: { readonly random: Random },
): Promise<BlobStore & { close(): void }> {
  const { createS3Blobs } = await import('./s3.ts')
  return createS3Blobs(settings, own)
}
