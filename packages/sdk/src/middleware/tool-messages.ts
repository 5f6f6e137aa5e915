import {
  decodeMppJson,
  encodeMppJson,
  type JsonObject,
  parseChallenges,
  parseReceipt,
  x402Headers,
} from '@purser/protocol'
import { isRecord } from '../problem.ts'
import { decodeHeader, encodeHeader } from './headers.ts'
import type { OwnResponse } from './responses.ts'

/** The members of `_meta` that carry payments (x402 MCP transport v2; MPP draft-payment-transport-mcp-00). */
const keys = {
  x402Payment: 'x402/payment',
  x402Response: 'x402/payment-response',
  mppCredential: 'org.paymentauth/credential',
  mppRequired: 'org.paymentauth/payment-required',
  mppReceipt: 'org.paymentauth/receipt',
}

type Meta = Readonly<Record<string, unknown>>

/** The result of a tool that was not run or not paid for: the terms of a payment, or why one was refused. */
export interface ToolRefusal {
  [key: string]: unknown
  content: { type: 'text'; text: string }[]
  isError: true
  structuredContent?: Record<string, unknown>
  _meta?: Record<string, unknown>
}

/** The payment headers that a call over HTTP would have, from its `_meta`. */
export function headersOfCall(meta: Meta | undefined): ReadonlyMap<string, string> {
  const [payment, credential] = [meta?.[keys.x402Payment], meta?.[keys.mppCredential]]
  const headers = new Map<string, string>()
  if (payment !== undefined) {
    headers.set('payment-signature', typeof payment === 'string' ? payment : encodeHeader(payment))
  }
  if (credential !== undefined) headers.set('authorization', credentialHeader(credential))
  return headers
}

/** Over MCP a credential is an object, and the request of its challenge too. Over HTTP both are base64url. */
function credentialHeader(credential: unknown): string {
  if (typeof credential === 'string') return `Payment ${credential}`
  const { challenge, ...rest } = isRecord(credential) ? credential : {}
  const { request, ...echoed } = isRecord(challenge) ? challenge : {}
  const text = isRecord(request) ? encodeMppJson(request as JsonObject) : request
  return `Payment ${encodeMppJson({ ...rest, challenge: { ...echoed, request: text } } as JsonObject)}`
}

/** The result of a tool as a response over HTTP, to be kept for a repeat. */
export function responseOf(result: object, headers: OwnResponse['headers'] = {}): OwnResponse {
  return { status: 200, headers, body: JSON.stringify(result) }
}

/** Returns a response of the middleware as a tool result: the tool's own result with its receipt, or a refusal. */
export function resultOf(response: OwnResponse): object {
  const { status, headers, body } = response
  if (status >= 300 || typeof body !== 'string') return refusalOf(response)
  return withReceipt(JSON.parse(body), headersOf(headers))
}

/** A result with the receipt of its payment in `_meta`. */
export function withReceipt<R extends object>(result: R, headers: ReadonlyMap<string, string>): R {
  const receipts = receiptsIn(headers)
  if (Object.keys(receipts).length === 0) return result
  const own: unknown = Reflect.get(result, '_meta')
  return { ...result, _meta: { ...(isRecord(own) ? own : {}), ...receipts } }
}

/**
 * A 402 as a result that both protocols read: the offers of x402 in `structuredContent` and the first text, those of MPP
 * in `_meta`. Other refusals are their problem record as text.
 */
function refusalOf({ status, headers, body }: OwnResponse): ToolRefusal {
  const all = headersOf(headers)
  const required = decodeHeader(all.get(x402Headers.paymentRequired.toLowerCase()) ?? '')
  const problem = typeof body === 'string' ? problemIn(body) : undefined
  const challenges = challengesIn(headers)
  const response = required ?? problem ?? { status }
  const offered = { httpStatus: status, challenges, ...(problem?.type !== undefined && { problem }) }
  const meta = { ...receiptsIn(all), ...(challenges.length > 0 && { [keys.mppRequired]: offered }) }
  return {
    content: [{ type: 'text', text: JSON.stringify(response) }],
    isError: true,
    ...(required !== undefined && { structuredContent: required }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  }
}

function challengesIn(headers: OwnResponse['headers']): object[] {
  const given = headers['WWW-Authenticate'] ?? []
  const challenges = parseChallenges(typeof given === 'string' ? [given] : given)
  return challenges.map((challenge) => ({ ...challenge, request: decodeMppJson(challenge.request) }))
}

/** The members of a problem record (RFC 9457), without the offers of x402 version 1 that may stand beside them. */
function problemIn(body: string): Record<string, unknown> | undefined {
  const read: unknown = JSON.parse(body)
  if (!isRecord(read)) return undefined
  const { x402Version: _, accepts: _accepts, ...problem } = read
  return problem
}

function receiptsIn(headers: ReadonlyMap<string, string>): Record<string, unknown> {
  const settled = decodeHeader(headers.get('payment-response') ?? '')
  const receipt = parseReceipt(headers.get('payment-receipt') ?? '')
  return {
    ...(settled !== undefined && { [keys.x402Response]: settled }),
    ...(receipt !== undefined && { [keys.mppReceipt]: receipt }),
  }
}

function headersOf(headers: OwnResponse['headers']): ReadonlyMap<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))
}
