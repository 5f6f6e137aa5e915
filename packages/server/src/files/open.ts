import type { Clock } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { openDiskBlobs } from './disk.ts'
import type { BlobStore, S3Settings } from './port.ts'
import { openS3Blobs } from './s3-on-demand.ts'

/** Opens the file storage that the operator configured; returns it and a function that closes it. */
export async function openFiles(
  place: { readonly directory: string } | { readonly s3: S3Settings },
  own: { readonly clock: Clock; readonly random: Random },
): Promise<{ readonly blobs: BlobStore; close(): void }> {
  if ('directory' in place) return { blobs: await openDiskBlobs({ ...place, ...own }), close: () => undefined }
  const blobs = await openS3Blobs(place.s3, own)
  return { blobs, close: blobs.close }
}
