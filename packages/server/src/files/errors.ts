import { defineErrors } from '../platform/errors.ts'

/** Errors of the file storage. The message of the operating system or remote storage goes only into `cause`. */
export const fail = defineErrors({
  'file-storage-unavailable': {
    status: 503,
    title: 'File Storage Unavailable',
    detail: 'The file storage does not respond or is full. Nothing was stored. Try again shortly.',
    causes: ['The disk of `FILES_DIR` is full or not writable, or the S3 service of the operator does not answer.'],
    fix: 'Upload again in a minute: nothing of the file was stored. The operator frees space or repairs the settings of the storage (`FILES_DIR`, `FILES_S3_ENDPOINT`); the log has the storage’s own message.',
  },
})

/** For the error tables of operations that read or write files. */
export const fileStorageErrors = fail.table

/** The content exceeds the limit of this upload. The feature that set the limit maps it to its own error. */
export class BlobTooLarge extends Error {
  readonly bytesMax: number

  constructor(bytesMax: number) {
    super(`the content is larger than ${bytesMax} bytes`)
    this.name = 'BlobTooLarge'
    this.bytesMax = bytesMax
  }
}

/** The requested range is outside the content. `size` is the total size in bytes. */
export class BlobRangeOutside extends Error {
  readonly size: number

  constructor(size: number) {
    super(`the range is not within the ${size} bytes`)
    this.name = 'BlobRangeOutside'
    this.size = size
  }
}
