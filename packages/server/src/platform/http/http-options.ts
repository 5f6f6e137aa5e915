import type { Caller } from '../ctx.ts'
import type { RequestId } from '../ids.ts'
import type { Log } from '../log.ts'
import { memoryBudgets } from '../memory-budgets.ts'
import type { BoundOperation } from '../operation.ts'
import type { AdmissionLimits } from './admission.ts'
import { CountedRequest } from './counted-request.ts'
import type { IdentifyOptions } from './identify.ts'
import type { PauseFor } from './pause-reading.ts'
import type { PublicPage } from './public-page.ts'

/** The limits of a server that are settings. */
export interface ServerLimits {
  /** Bytes of all bodies in flight together. */
  readonly bodiesBytesMax: number
  readonly connectionsMax: number
  /** Most open connections of one address that made no request with a valid credential. */
  readonly connectionsPerAddressMax: number
  /** Milliseconds for which a connection may be silent while a request is in progress or its response is not read. */
  readonly silenceMsMax: number
  /** Milliseconds that the header fields of a request may take. */
  readonly headersMsMax: number
}

export const limitsDefault: ServerLimits = {
  bodiesBytesMax: memoryBudgets.bodies,
  connectionsMax: 30_000,
  connectionsPerAddressMax: 1_000,
  silenceMsMax: 150_000,
  headersMsMax: 15_000,
}

/** The options of Node's HTTP server. */
export function nodeOptions({ headersMsMax }: ServerLimits) {
  return {
    IncomingMessage: CountedRequest,
    headersTimeout: headersMsMax,
    connectionsCheckingInterval: Math.min(5_000, headersMsMax),
    // `headFault` answers a request without Host, with a problem record.
    requireHostHeader: false,
  }
}

const noCompiler = () => (): never => {
  throw new Error('a route has a schema of the HTTP library')
}

/** Instead of Fastify's compilers of schemas, a hundred modules that it loads even where no route has such a schema. */
export const noCompilers = { buildValidator: noCompiler, buildSerializer: noCompiler }

/** A request of an identified caller whose response begins. */
export interface CompletedRequest {
  readonly requestId: RequestId
  readonly caller: Caller
  readonly method: string
  /** The path as its operation declares it. */
  readonly route: string
  readonly status: number
  /** Since the request arrived. */
  readonly durationMs: number
  /** The code of the problem in the response; null if it is none. */
  readonly code: string | null
}

export interface HttpOptions extends IdentifyOptions, AdmissionLimits {
  readonly operations: readonly BoundOperation[]
  readonly pages: readonly PublicPage[]
  /** The proxies whose X-Forwarded-For counts: the number of proxies before the service, or their networks; false for none. */
  readonly trustProxy: false | number | readonly string[]
  readonly limits?: Partial<ServerLimits>
  /** Called for each request of an identified caller, also a refused one. Must not throw. */
  readonly onResponse?: (answered: CompletedRequest) => void
  /** Gets a line for each response that was sent, also to callers who are not identified; default none. */
  readonly accessLog?: Log | undefined
  /** Milliseconds for a complete body to arrive, and between two pieces of a streamed one; default one minute. */
  readonly bodyMsMax?: number
  /** Divides the tiny chunks of streamed bodies between their owners; default a budget of this server. */
  readonly pauses?: PauseFor
}

export interface HttpServer {
  listen(port: number, host: string): Promise<{ port: number }>
  /** Accepts no new connections, lets every request in progress finish, then resolves. */
  close(): Promise<void>
}
