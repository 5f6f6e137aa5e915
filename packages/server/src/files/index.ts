export { openDiskBlobs } from './disk.ts'
export { BlobRangeOutside, BlobTooLarge, fileStorageErrors } from './errors.ts'
export { openFiles } from './open.ts'
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
export { openS3Blobs } from './s3-on-demand.ts'
export { openMarks } from './witness-marks.ts'
