import type { Random } from '../platform/random.ts'
import type { BlobStore } from './port.ts'

/** Where an S3-compatible storage is, and a key pair that may read, write, list and delete in this bucket and nowhere else. */
export interface S3Settings {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** The blob port on an S3-compatible storage. Its client is read only where one is used: it takes some 10 MB of memory. */
export async function openS3Blobs(
  settings: S3Settings,
  own: { readonly random: Random },
): Promise<BlobStore & { close(): void }> {
  const { createS3Blobs } = await import('./s3.ts')
  return createS3Blobs(settings, own)
}
