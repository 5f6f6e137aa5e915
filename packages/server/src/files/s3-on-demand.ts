import type { Random } from '../platform/random.ts'
import type { BlobStore, S3Settings } from './port.ts'

/** The blob port on an S3-compatible storage. The client is imported only when used, because it takes about 10 MB of memory. */
export async function openS3Blobs(
  settings: S3Settings,
  own: { readonly random: Random },
): Promise<BlobStore & { close(): void }> {
  const { createS3Blobs } = await import('./s3.ts')
  return createS3Blobs(settings, own)
}
