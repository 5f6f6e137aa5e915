import type { Operation } from '../operation.ts'
import type { AdmissionLimits } from './admission.ts'
import type { IdentifyOptions } from './identify.ts'
import type { PublicPage } from './public-page.ts'

/** The limits of a server that are settings. */
export interface ServerLimits {
  /** Bytes of all bodies in flight together. */
  readonly bodiesBytesMax: number
  readonly connectionsMax: number
  /** Most open connections of one address that made no request with a valid credential. */
  readonly connectionsPerAddressMax: number
  /** How long a connection may be silent while a request is in progress or its response is not read. */
  readonly silenceMsMax: number
  /** How long the header fields of a request may take. */
  readonly headersMsMax: number
}

export const limitsDefault: ServerLimits = {
  bodiesBytesMax: 67_108_864,
  connectionsMax: 30_000,
  connectionsPerAddressMax: 1_000,
  silenceMsMax: 150_000,
  headersMsMax: 15_000,
}

export interface HttpOptions extends IdentifyOptions, AdmissionLimits {
  readonly operations: readonly Operation[]
  readonly pages: readonly PublicPage[]
  /** Which proxies' X-Forwarded-For counts: the number of proxies before the service, or their networks; false for none. */
  readonly trustProxy: false | number | readonly string[]
  readonly limits?: Partial<ServerLimits>
  /** Milliseconds for a complete body to arrive, and between two pieces of a streamed one; default one minute. */
  readonly bodyMsMax?: number
}
