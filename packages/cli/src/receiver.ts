import type { SignedDelivery } from '@purser/sdk'
import { CommandError } from './command.ts'

/** The local server's response to a delivery. */
export interface Received {
  /** The HTTP status; undefined without a response. */
  readonly status: number | undefined
  /** The reason why there was no response. */
  readonly error: string | undefined
  readonly durationMs: number
  /** The first bytes of the response body. */
  readonly responseBody: string
}

/** The service waits as long for a webhook. */
const timeoutMs = 10_000
const responseBytesMax = 1_024
/** Headers of a delivery that are forwarded. */
const passedOn = /^(?:content-type|user-agent|webhook-[a-z]+|x-service-[a-z]+)$/

/** Parses the receiver's address: http or https, without credentials, which would show up in logs. */
export function receiverAt(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url !== undefined && isHttp && url.username === '' && url.password === '') return url
  throw new CommandError(
    `--forward-to ${text} is not a URL that events can be posted to. Example: http://localhost:3000/hook`,
  )
}

/**
 * Posts a delivery unchanged: headers and raw body, once, without following redirects. Never throws for a fault of the receiver;
 * throws the signal's reason when the program is stopped.
 */
export async function forward(
  fetch: typeof globalThis.fetch,
  receiver: URL,
  { headers, body }: SignedDelivery,
  stopped: AbortSignal,
): Promise<Received> {
  const began = performance.now()
  const late = AbortSignal.timeout(timeoutMs)
  const sent = Object.fromEntries(Object.entries(headers).filter(([name]) => passedOn.test(name)))
  const took = () => Math.round(performance.now() - began)
  try {
    const signal = AbortSignal.any([late, stopped])
    const response = await fetch(receiver, { method: 'POST', headers: sent, body, redirect: 'manual', signal })
    const responseBody = await beginningOf(response)
    return { status: response.status, error: undefined, durationMs: took(), responseBody }
  } catch (error) {
    stopped.throwIfAborted()
    const reason = late.aborted ? `no answer within ${timeoutMs / 1_000} s` : reasonOf(error)
    return { status: undefined, error: reason, durationMs: took(), responseBody: '' }
  }
}

/** Reads the first bytes of the body and cancels the rest, so that a large response does not fill the memory. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  while (bytes < responseBytesMax) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    bytes += value.length
  }
  reader.cancel().catch(() => undefined)
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, responseBytesMax))
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  if (code === 'ECONNREFUSED') return 'connection refused (ECONNREFUSED)'
  return code ?? (error instanceof Error ? error.message : String(error))
}
