import { parseAddress } from '@purser/protocol'
import { z } from 'zod'
import type { Outbound, OutboundRequest, PostLimits } from '../platform/outbound.ts'
import { unstorableTexts } from '../platform/wire.ts'
import { fail } from './errors.ts'

/** The account of the deployment at a partner. */
export interface PartnerSettings {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly apiKey: string
  /** Per request; each partner has its own default. */
  readonly timeoutMs?: number
}

/** A partner's HTTP API: base URL, headers of every request, and limits on the time and size of a response. */
export interface PartnerApi {
  readonly outbound: Outbound
  /** Used in logs and error causes. */
  readonly name: string
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** Header names in lower case, including the API key's. */
  readonly headers: Readonly<Record<string, string>>
  readonly limits: PostLimits
}

export interface PartnerRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query after the base URL. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A permanent refusal of the request; a retry would not help. */
interface Declined {
  readonly status: number
  readonly json: unknown
}

export type PartnerResponse<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly declined: Declined }

/** Statuses that are temporary or concern the deployment's API key, not the request. */
const notAboutRequest = [401, 403, 407, 408, 409, 425, 429]

/**
 * Sends a request to a partner and parses the response with the schema. A 4xx status about the request is returned as `declined`. Timeouts, overload,
 * a refused API key, malformed responses and text that the database cannot store throw `partner-unavailable`, so that no decision depends on an
 * unknown response.
 */
export async function requestPartner<T>(
  api: PartnerApi,
  request: PartnerRequest,
  schema: z.ZodType<T>,
): Promise<PartnerResponse<T>> {
  const { status, json } = await exchange(api, request)
  if (status >= 400 && status < 500 && !notAboutRequest.includes(status))
    return { ok: false, declined: { status, json } }
  if (status < 200 || status >= 300) throw unavailable(api, { status })
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw unavailable(api, { unreadable: parsed.error.issues.map(({ path }) => path.join('.')) })
  const [unstorable] = unstorableTexts(parsed.data, 1)
  if (unstorable !== undefined) throw unavailable(api, { unstorable: unstorable.join('.') })
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

/** The cause names the partner but not the request, which may contain a customer's account. */
function unavailable({ name }: PartnerApi, cause: unknown): Error {
  return fail('partner-unavailable', {}, new Error(`${name} returned no usable answer`, { cause }))
}

/** An address of a partner's response, checksummed. */
export const partnerAddress = z.string().transform((text, ctx) => {
  const value = parseAddress(text)
  if (value !== undefined) return value
  ctx.addIssue({ code: 'custom', message: 'must be an address' })
  return z.NEVER
})
