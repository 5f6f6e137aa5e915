import type { SignedDelivery } from '@purser/sdk'
import { CannotDo } from './command.ts'

/** What the local server made of a delivery. */
export interface Received {
  /** Undefined where there was no answer. */
  readonly status: number | undefined
  /** Why there was none. */
  readonly error: string | undefined
  readonly durationMs: number
  /** The beginning of the answer's body. */
  readonly responseBody: string
}

/** As long as the service waits for a webhook. */
const timeoutMs = 10_000
const responseBytesMax = 1_024
/** What a delivery carries; nothing else is passed on. */
const passedOn = /^(?:content-type|user-agent|webhook-[a-z]+|x-service-[a-z]+)$/

/** The address that the person named: http or https, with no word in it that a log should not see. */
export function receiverAt(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url !== undefined && isHttp && url.username === '' && url.password === '') return url
  throw new CannotDo(`--forward-to ${text} is no address that events can go to: http://localhost:3000/hook, say.`)
}

/**
 * Posts a delivery as it is: its headers and its raw body. Nothing is sent twice and no redirect followed. Never throws for what the
 * receiver does; throws the signal's reason where the person wants an end.
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

/** The rest is not read: what a receiver says does not fill the memory here. */
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
  if (code === 'ECONNREFUSED') return 'nobody listens there (ECONNREFUSED)'
  return code ?? (error instanceof Error ? error.message : String(error))
}
