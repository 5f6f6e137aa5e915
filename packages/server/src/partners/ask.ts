import type { z } from 'zod'
import type { Outbound, OutboundRequest, PostLimits } from '../platform/outbound.ts'
import { fail } from './errors.ts'

/** A partner's HTTP API: where it is, what every request carries, how long an answer may take and how large it may be. */
export interface PartnerApi {
  readonly outbound: Outbound
  /** For logs and causes. */
  readonly name: string
  /** Without a slash at its end. */
  readonly baseUrl: string
  /** Names in lower case. The key is among them. */
  readonly headers: Readonly<Record<string, string>>
  readonly limits: PostLimits
}

export interface PartnerRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** From the base address on, with its query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A refusal of the request itself: sending it again would not help. */
export interface Declined {
  readonly status: number
  readonly json: unknown
}

export type PartnerAnswer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly declined: Declined }

/** Statuses that speak of the moment or of the deployment's own key, not of the request. */
const passing = [401, 403, 407, 408, 409, 425, 429]

/**
 * Asks a partner and reads the answer by its schema. A status of the request's own fault comes back as `declined`; silence, overload, a
 * refused key and an answer that is not what was promised throw `partner-unavailable`, so that nobody decides on what was not understood.
 */
export async function askPartner<T>(
  api: PartnerApi,
  request: PartnerRequest,
  schema: z.ZodType<T>,
): Promise<PartnerAnswer<T>> {
  const { status, json } = await exchange(api, request)
  if (status >= 400 && status < 500 && !passing.includes(status)) return { ok: false, declined: { status, json } }
  if (status < 200 || status >= 300) throw unavailable(api, { status })
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw unavailable(api, { unreadable: parsed.error.issues.map(({ path }) => path.join('.')) })
  return { ok: true, value: parsed.data }
}

function exchange(api: PartnerApi, { method, path, headers, body }: PartnerRequest) {
  const sent: OutboundRequest = {
    method,
    url: `${api.baseUrl}${path}`,
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...api.headers,
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }
  return api.outbound.exchange(sent, api.limits).catch((error: unknown) => {
    throw unavailable(api, error)
  })
}

/** The cause names the partner and never the request, which may hold a customer's account. */
function unavailable({ name }: PartnerApi, cause: unknown): Error {
  return fail('partner-unavailable', {}, new Error(`${name} did not answer usefully`, { cause }))
}
