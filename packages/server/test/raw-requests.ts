import { operations } from '../src/operations.ts'
import type { Operation } from '../src/platform/operation.ts'
import type { WireAnswer } from './declared.ts'
import { formType } from './files/uploads.ts'
import type { Sample } from './samples.ts'

export interface Requested extends Pick<Sample, 'params' | 'query'> {
  readonly headers?: Readonly<Record<string, string>>
  /** The body as sent. */
  readonly body?: string | Uint8Array<ArrayBuffer> | undefined
}

/** Sends a request to an operation and returns the raw answer. */
export async function sendRaw(base: string, operation: Operation, requested: Requested): Promise<WireAnswer> {
  const { headers = {}, params = {}, query = '', body } = requested
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? 'none')
  const init = { method: operation.method, headers, ...(body === undefined ? {} : { body }) }
  const response = await fetch(`${base}${path}${query}`, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Sends a sample with a key and these changes. */
export function sendSample(
  base: string,
  operation: Operation,
  key: string,
  { headers, query, ...sample }: Omit<Requested, 'body'> & Sample,
): Promise<WireAnswer> {
  const sent = asSent(operation, key, sample)
  return sendRaw(base, operation, { ...sent, ...(headers && { headers }), ...(query && { query }) })
}

/** A sample as the request that is sent. */
export function asSent(operation: Operation, key: string, { params = {}, query = '', body, form }: Sample): Requested {
  if (form !== undefined) return { headers: { ...asKey(key), 'content-type': formType }, params, query, body: form }
  const text = body === undefined || operation.method === 'GET' ? undefined : JSON.stringify(body)
  return { headers: asKey(key), params, query, body: text }
}

export function asKey(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
}

/**
 * Status and problem without its request id. It must be equal for somebody else's resource and for one that never
 * existed.
 */
export function problemOf({ status, text }: WireAnswer): Readonly<Record<string, unknown>> {
  const { requestId: _, ...problem } = JSON.parse(text === '' ? '{}' : text)
  return { httpStatus: status, ...problem }
}

export function operationOf(id: string): Operation {
  const found = operations.find((operation) => operation.id === id)
  if (found === undefined) throw new Error(`no operation ${id}`)
  return found
}
