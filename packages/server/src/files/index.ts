export { openDiskBlobs } from './disk.ts'
export { BlobRangeOutside, BlobTooLarge, fileStorageErrors } from './errors.ts'
export { openFiles, openMarks, openS3Blobs } from './open.ts'
export type { S3Settings } from './port.ts'
export {
  type BlobKey,
  type BlobStore,
  type ByteRange,
  isBlobKey,
  newBlobKey,
  type OpenedBlob,
  type StoredBlob,
} from './port.ts'
