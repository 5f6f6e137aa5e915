import { PaymentOutcomeUnknownError, PaymentRejectedError } from '../pay/errors.ts'
import type { PayingFetch, PayingRequestInit } from '../pay/options.ts'
import { createPayingFetch } from '../pay/paying-fetch.ts'
import { timeLimit } from '../time-limit.ts'
import type { PayingToolsOptions } from './options.ts'
import { failureResult, responseResult } from './results.ts'
import { type AgentTool, ArgumentError, argumentsOf, type ToolArgument, textOf } from './tool.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const properties: Record<string, ToolArgument> = {
  url: { type: 'string', description: 'The http or https URL to fetch.' },
  method: { type: 'string', enum: methods, description: 'Default: GET.' },
  headers: { type: 'object', additionalProperties: { type: 'string' }, description: 'Request headers.' },
  body: { type: 'string', description: 'The request body. Set the header content-type unless it is JSON.' },
  purchase: {
    type: 'string',
    description:
      'A name of your own for what you buy, such as "report-2026-11". A repeat with this name and URL is not paid a second time.',
  },
}

/** The name is the Idempotency-Key of the wallet's payment, which the service keeps for a day. */
const purchaseOfWallet: ToolArgument = {
  type: 'string',
  description:
    'A name of your own for what you buy, such as "report-2026-11". A repeat with this name in the next 24 hours is not paid a second time; a later one is.',
}

const approvedPaymentId: ToolArgument = {
  type: 'string',
  description: 'The paymentId of an earlier call that needed an approval, once a person has approved it.',
}

/** A tool that fetches a URL and pays for it. */
export function payAndFetchTool(options: PayingToolsOptions, charactersMax: number): AgentTool {
  const { charactersMax: _, timeoutMs = 60_000, balances: _balances, resources: _resources, ...paying } = options
  const pay = createPayingFetch(paying)
  const isWallet = 'wallet' in paying
  const payApproved = (paymentId: string): PayingFetch =>
    isWallet ? createPayingFetch({ ...paying, wallet: { ...paying.wallet, approvedPaymentId: paymentId } }) : pay
  return {
    name: 'pay_and_fetch',
    description:
      'Fetches a URL and pays for it if it answers 402 Payment Required (x402 or MPP), within the limits of the user. Returns the status, the body, and what was paid. Use it for paid APIs and pages.',
    inputSchema: {
      type: 'object',
      properties: isWallet ? { ...properties, purchase: purchaseOfWallet, approvedPaymentId } : properties,
      required: ['url'],
      additionalProperties: true,
    },
    execute: async (input, { signal } = {}) => {
      const limit = timeLimit(timeoutMs, signal)
      try {
        const { url, init, approved } = requestOf(input, options.limits.hosts)
        const send = approved === undefined ? pay : payApproved(approved)
        return await responseResult(await sendTwice(send, url, { ...init, signal: limit.signal }), charactersMax)
      } catch (error) {
        if (signal?.aborted === true) throw error
        return failureResult(error, options.onFault)
      } finally {
        limit.end()
      }
    },
  }
}

/**
 * Sends the credential once more if the outcome is unknown. The credential can be charged at most once. If the seller
 * refuses it the second time, it may have charged it the first time, so the outcome stays unknown.
 */
async function sendTwice(pay: PayingFetch, url: string, init: PayingRequestInit): Promise<Response> {
  try {
    return await pay(url, init)
  } catch (error) {
    const isRepeatable = error instanceof PaymentOutcomeUnknownError && error.credential !== undefined
    if (!isRepeatable || init.signal?.aborted === true) throw error
    return error.retry({ signal: init.signal ?? undefined }).catch((again: unknown) => {
      throw again instanceof PaymentRejectedError ? error : again
    })
  }
}

interface ToolRequest {
  readonly url: string
  readonly init: PayingRequestInit
  readonly approved: string | undefined
}

/** The request that a model describes. Throws `ArgumentError` if it may not be sent. */
function requestOf(input: unknown, hosts: readonly string[] | undefined): ToolRequest {
  const given = argumentsOf(input)
  const url = textOf(given.url, 'url', 8_000)
  if (url === undefined) throw new ArgumentError('url is missing.')
  mustBeFetchable(url, hosts)
  const method = (textOf(given.method, 'method', 10) ?? 'GET').toUpperCase()
  if (!methods.includes(method)) throw new ArgumentError(`method must be one of ${methods.join(', ')}.`)
  const body = textOf(given.body, 'body', 1_000_000)
  if (body !== undefined && method === 'GET') throw new ArgumentError('A GET request has no body.')
  const headers = headersOf(given.headers, body)
  const approved = textOf(given.approvedPaymentId, 'approvedPaymentId', 100)
  if (approved !== undefined && !/^wtx_[0-9a-z]+$/.test(approved))
    throw new ArgumentError('approvedPaymentId must be a paymentId, such as wtx_….')
  const named = textOf(given.purchase, 'purchase', 90)
  // The first request keeps its own name, under which its Idempotency-Key repeats the response. The request after the
  // approval needs another name.
  const purchase = named === undefined || approved === undefined ? named : `${named}:${approved}`
  const sent = body === undefined ? {} : { body }
  return { url, approved, init: { method, headers, redirect: 'manual', purchase, ...sent } }
}

function headersOf(given: unknown, body: string | undefined): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(argumentsOf(given))) {
    try {
      headers.set(name, String(value))
    } catch {
      throw new ArgumentError('A header has a name or value that HTTP does not allow.')
    }
  }
  if (body !== undefined && !headers.has('content-type') && isJson(body))
    headers.set('content-type', 'application/json')
  return headers
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const localNames = /(?:^|\.)(?:localhost|local|internal|intranet|lan|home\.arpa)$/

/**
 * Throws `ArgumentError` for a URL that a model may not fetch. With `hosts`, that is every URL of another host. Without
 * `hosts`, it is a URL with an IP address as host, or with a name of a private network.
 */
function mustBeFetchable(text: string, hosts: readonly string[] | undefined): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw new ArgumentError('url must be an http or https URL.')
  if (url.username !== '' || url.password !== '') throw new ArgumentError('url must not contain credentials.')
  const listed = hosts?.map((host) => host.toLowerCase())
  if (listed !== undefined) {
    const isListed = listed.includes(url.hostname) || listed.includes(url.host)
    if (!isListed) throw new ArgumentError(`This tool fetches these hosts only: ${listed.slice(0, 20).join(', ')}.`)
    return
  }
  const name = url.hostname.replace(/\.$/, '')
  const isNumeric = name.startsWith('[') || /^[\d.]+$/.test(name)
  if (isNumeric || !name.includes('.') || localNames.test(name))
    throw new ArgumentError('url must have a public host name.')
}
