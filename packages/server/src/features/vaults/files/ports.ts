import type { BlobStore } from '../../../files/index.ts'

/** Signs addresses that open a file without a header, and checks such signatures in constant time. */
export interface FileLinks {
  sign(link: string): string
  check(link: string, signature: string): boolean
}

declare module '../../../platform/ctx.ts' {
  interface Ports {
    /** The store of the files' bytes. */
    readonly blobs: BlobStore
    readonly fileLinks: FileLinks
  }
}
