import type { Caller } from '../ctx.ts'
import type { BoundOperation } from '../operation.ts'
import { type Admit, callerOf, type Headed } from './admission.ts'
import type { HttpOptions } from './http-options.ts'
import { type Count, type IdentifyRequest, identify, organisationHeaders } from './identify.ts'
import { type Reportable, reportResponse } from './response-hooks.ts'

interface Requested extends Reportable {
  readonly id: string
  readonly ip: string
  readonly method: string
  readonly params: unknown
  readonly query: unknown
  readonly headers: object
}

/** Identifies the caller and refuses one that may not make the call. Sets the rate-limit headers of the response. */
export function identifyCaller(
  operation: BoundOperation,
  request: Requested,
  reply: Headed & { headers(fields: Readonly<Record<string, string>>): unknown },
  { options, admit }: { readonly options: HttpOptions; readonly admit: Admit },
): Promise<Caller> {
  const arrivedAt = performance.now()
  const count: Count = {
    caller: (caller) => {
      reportResponse(request, { caller, route: operation.path, arrivedAt }, options)
      reply.headers(organisationHeaders(caller))
      admit.caller(callerOf(caller), reply)
    },
    address: () => admit.address(request.ip, reply),
    guest: (guestId) => admit.guest({ id: guestId, ip: request.ip }, reply),
    lookup: (credential) => admit.lookup(request.ip, credential, reply),
    found: admit.found,
  }
  return identify(options, operation, identified(request), count)
}

/** Looks up the caller of an admitted request again, uncounted, and throws the refusal of one that may not make the call any more. */
export async function identifyAgain(
  operation: BoundOperation,
  request: Requested,
  { options }: { readonly options: HttpOptions },
): Promise<void> {
  await identify(options, operation, identified(request), uncounted)
}

const uncounted: Count = {
  caller: () => undefined,
  address: () => undefined,
  guest: () => undefined,
  lookup: () => ({ name: '', takenFrom: undefined }),
  found: () => undefined,
}

function identified({ method, params, query, headers }: Requested): IdentifyRequest {
  return {
    method,
    params: params as Record<string, string>,
    query: query as Record<string, unknown>,
    headers: headers as Record<string, string | undefined>,
  }
}
