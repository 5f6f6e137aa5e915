import type { RawResponse } from './call.ts'

/** An address that needs no key: health, documents, problem pages, and deliveries with their own signature. */
export interface PublicPage {
  readonly path: string
  /** Default GET, which serves HEAD too. */
  readonly method?: 'GET' | 'POST'
  /** Whether GET changes something, as a sign-in link does. Then HEAD is not served: link checkers send it. */
  readonly getChanges?: true
  /** Most bytes of a request's body; a page without it takes none. */
  readonly bodyBytesMax?: number
  readonly respond: (
    params: Readonly<Record<string, string>>,
    request: PageRequest,
  ) => RawResponse | Promise<RawResponse>
  /** Number of requests of its address that one counts as; default 1. */
  readonly cost?: number
  /** Whether pages of any origin may read it. */
  readonly crossOrigin?: true
  /** A file in memory. It has a limit of its own, since one page of the dashboard requests many of them at once. */
  readonly isStatic?: true
}

/** A request to a page: nothing of it is validated. */
export interface PageRequest {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The bytes as received. */
  readonly body: Uint8Array
  /** The network address of the caller. */
  readonly address: string
}
