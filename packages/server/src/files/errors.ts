import { defineErrors } from '../platform/errors.ts'

/** What asking the storage may end in. What the operating system or the remote storage said goes to `cause` alone. */
export const fail = defineErrors({
  'file-storage-unavailable': {
    status: 503,
    title: 'File Storage Unavailable',
    detail: 'The storage of files does not answer or is full. Nothing was stored. Try again shortly.',
  },
})

/** For the error tables of operations that read or write files. */
export const fileStorageErrors = fail.table

/** More came than the limit of this upload. The room that set the limit says so in its own words. */
export class BlobTooLarge extends Error {
  readonly bytesMax: number

  constructor(bytesMax: number) {
    super(`the content is larger than ${bytesMax} bytes`)
    this.name = 'BlobTooLarge'
    this.bytesMax = bytesMax
  }
}

/** The part that was asked for is not within the content; `size` is that of the whole, in bytes. */
export class BlobRangeOutside extends Error {
  readonly size: number

  constructor(size: number) {
    super(`the range is not within the ${size} bytes`)
    this.name = 'BlobRangeOutside'
    this.size = size
  }
}
