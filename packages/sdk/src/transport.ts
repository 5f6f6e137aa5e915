import { must, mustCount, mustTexts, type Named } from './check.ts'
import { ConnectionError, errorOf, PurserError, UnavailableError } from './errors.ts'
import { readProblem } from './problem.ts'
import { isInProgress, mayRetry, type RetryPolicy, readRetryAfter, retryDelayMs, timeoutMsOf } from './retry.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
/** An object is sent as one parameter for each member, `name.member`. */
export type QueryValue = string | number | boolean | Readonly<Record<string, string>> | undefined

/** The options of a call besides its body. */
export interface CallOptions {
  /** Only for a POST. Default: generated. A request with the same key and body runs once. */
  readonly idempotencyKey?: string | undefined
  /** Aborts the call, including the delays between attempts. */
  readonly signal?: AbortSignal | undefined
  /** Timeout of each attempt. */
  readonly timeoutMs?: number | undefined
  readonly maxRetries?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export interface RequestOptions extends CallOptions {
  readonly body?: unknown
  readonly query?: Readonly<Record<string, QueryValue>> | undefined
}

/** A body that is sent unchanged instead of JSON. A body that can be read only once (a stream) is never sent again. */
export interface Upload {
  readonly contentType: string
  readonly body: Blob | ReadableStream<Uint8Array>
}

export interface SendOptions extends RequestOptions {
  /** Whether the operation writes nothing, so that it needs no Idempotency-Key. */
  readonly keyless?: boolean | undefined
  readonly upload?: Upload | undefined
  /** The media type of the response; default: JSON. */
  readonly accept?: 'text/csv' | undefined
}

export interface TransportSettings {
  /** The headers that identify the caller. */
  readonly identity: Readonly<Record<string, string>>
  /** Whether the browser sends its cookies, for a caller that is a signed-in person. */
  readonly credentials?: RequestCredentials | undefined
  readonly baseUrl: string
  readonly fetch: typeof globalThis.fetch
  /** Default: by the path. */
  readonly timeoutMs: number | undefined
  readonly retry: RetryPolicy
}

/** An attempt of a call. */
interface Attempt {
  readonly baseUrl: string
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  readonly idempotencyKey: string | undefined
  /** Whether the outcome of an earlier attempt is not known. */
  readonly isAfterLost: boolean
}

/** A 2xx response: the parsed body (undefined if empty; CSV as text) and values of headers. */
export interface ServiceResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly idempotencyKey: string | undefined
}

/** Sends a request, with retries. Returns the success or throws a PurserError. */
export type Send = (method: Method, path: string, options?: SendOptions) => Promise<ServiceResponse>

/**
 * Sends a request for a response that is not JSON. Returns the success with its body unread, or throws a PurserError.
 * The timeout ends when the response begins. `headers.accept` names the media type.
 */
export type Open = (path: string, options?: Omit<RequestOptions, 'body'>) => Promise<Response>

/**
 * Returns `send` and `open`. The API key or the session is sent only to `baseUrl`: redirects are not followed, and paths are
 * appended to the base, never resolved against it.
 */
export function transport(settings: TransportSettings): { readonly send: Send; readonly open: Open } {
  return {
    send: (method, path, options = {}) => {
      checkCall(options)
      const url = urlOf(settings, path, options)
      const idempotencyKey = keyOf(method, options)
      const request = requestOf(settings, method, { ...options, idempotencyKey })
      const isOnce = options.upload?.body instanceof ReadableStream
      const patience = isOnce ? { ...options, maxRetries: 0 } : options
      return withRetries(settings, patience, (isAfterLost) =>
        attemptOnce(
          settings.fetch,
          url,
          request,
          attemptOf(settings, path, { ...options, idempotencyKey, isAfterLost }),
        ),
      )
    },
    open: (path, options = {}) => {
      checkCall(options)
      const url = urlOf(settings, path, options)
      const headers = { ...options.headers, ...settings.identity }
      const request: RequestInit = { ...sameForAll(settings), method: 'GET', headers }
      return withRetries(settings, options, (isAfterLost) =>
        openOnce(settings.fetch, url, request, attemptOf(settings, path, { ...options, isAfterLost })),
      )
    },
  }
}

/** The URL of a path. Without its first slash, the path would be part of another host name. */
function urlOf({ baseUrl }: TransportSettings, path: string, { query }: Pick<RequestOptions, 'query'>): string {
  must(path.startsWith('/'), 'The path', path, 'Begin it with a slash, such as "/account".')
  return baseUrl + path + queryOf(query)
}

/** The options of every call. A caller without types may mistype one: without its Idempotency-Key a payment is not the same again. */
const callOptions: Named<CallOptions> = {
  idempotencyKey: true,
  signal: true,
  timeoutMs: true,
  maxRetries: true,
  headers: true,
}
const sendOptions: Named<Omit<SendOptions, keyof CallOptions>> = {
  body: true,
  query: true,
  keyless: true,
  upload: true,
  accept: true,
}

function checkCall(options: SendOptions): void {
  const { body: _, ...named } = options
  for (const [name, value] of Object.entries(named)) {
    const isKnown = value === undefined || Object.hasOwn(callOptions, name) || Object.hasOwn(sendOptions, name)
    must(isKnown, name, value, `There is no such option of a call. Use ${Object.keys(callOptions).join(', ')}.`)
  }
  mustTexts({ idempotencyKey: options.idempotencyKey })
  mustCount('timeoutMs', options.timeoutMs, 1)
  mustCount('maxRetries', options.maxRetries, 0)
}

function attemptOf(
  { baseUrl, timeoutMs }: TransportSettings,
  path: string,
  { signal, idempotencyKey, isAfterLost, ...options }: CallOptions & Pick<Attempt, 'isAfterLost'>,
): Attempt {
  return {
    baseUrl,
    timeoutMs: options.timeoutMs ?? timeoutMs ?? timeoutMsOf(path),
    signal,
    idempotencyKey,
    isAfterLost,
  }
}

/** The least that an attempt counts of the time for a request in progress, so that a `Retry-After` of 0 ends too. */
const waitMsMin = 500

/** A request in progress is waited for by time, because a short count of attempts would end while it still pays. */
async function withRetries<T>(
  { retry }: TransportSettings,
  { maxRetries = retry.maxRetries, signal }: CallOptions,
  attemptIt: (isAfterLost: boolean) => Promise<T>,
): Promise<T> {
  let isAfterLost = false
  let waitedMs = 0
  let retries = 0
  for (let attempt = 0; ; attempt++) {
    try {
      return await attemptIt(isAfterLost)
    } catch (error) {
      if (!(error instanceof PurserError) || !mayRetry(error)) throw error
      const isWaited = isInProgress(error) && maxRetries > 0 && waitedMs < retry.inProgressMsMax
      if (!isWaited && retries >= maxRetries) throw error
      const delayMs = retryDelayMs(retry, attempt, error.retryAfterSeconds, Math.random())
      if (delayMs === undefined) throw error
      await pause(delayMs, signal)
      isAfterLost ||= !error.isOutcomeKnown
      if (isWaited) waitedMs += Math.max(delayMs, waitMsMin)
      else retries++
    }
  }
}

function keyOf(method: Method, { idempotencyKey, keyless = false }: SendOptions): string | undefined {
  if (method !== 'POST') return undefined
  return idempotencyKey ?? (keyless ? undefined : freshKey())
}

function requestOf(settings: TransportSettings, method: Method, options: SendOptions): RequestInit {
  const { accept = 'application/json', idempotencyKey } = options
  const headers: Record<string, string> = { ...options.headers, accept, ...settings.identity }
  const base = { ...sameForAll(settings), method, headers }
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (options.upload !== undefined) return uploading(base, headers, options.upload)
  // With a cookie, the service accepts a write only as JSON, even if it has no body.
  if (options.body !== undefined || (settings.credentials !== undefined && method !== 'GET'))
    headers['content-type'] = 'application/json'
  return options.body === undefined ? base : { ...base, body: JSON.stringify(options.body) }
}

function sameForAll({ credentials }: TransportSettings): RequestInit {
  return { redirect: 'manual', ...(credentials !== undefined && { credentials }) }
}

/** Node requires `duplex` with a stream body. Other engines ignore it. */
function uploading(base: RequestInit, headers: Record<string, string>, { contentType, body }: Upload): RequestInit {
  headers['content-type'] = contentType
  return { ...base, headers, body, ...(body instanceof ReadableStream && { duplex: 'half' }) }
}

async function attemptOnce(
  fetch: TransportSettings['fetch'],
  url: string,
  request: RequestInit,
  attempt: Attempt,
): Promise<ServiceResponse> {
  const timeout = AbortSignal.timeout(attempt.timeoutMs)
  const signal = attempt.signal === undefined ? timeout : AbortSignal.any([timeout, attempt.signal])
  try {
    const response = await fetch(url, { ...request, signal })
    const text = await response.text()
    return readResponse(response, text, attempt)
  } catch (error) {
    throw asPurserError(error, attempt, timeout)
  }
}

async function openOnce(
  fetch: TransportSettings['fetch'],
  url: string,
  request: RequestInit,
  attempt: Attempt,
): Promise<Response> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), attempt.timeoutMs)
  const signal = attempt.signal === undefined ? late.signal : AbortSignal.any([late.signal, attempt.signal])
  try {
    const response = await fetch(url, { ...request, signal })
    if (response.ok) return response
    throw refusalOf(response, parse(await response.text()), attempt)
  } catch (error) {
    throw asPurserError(error, attempt, late.signal)
  } finally {
    clearTimeout(timer)
  }
}

/** The error for a failed request, which names the address and the cause. Throws the signal's reason if the caller aborted it. */
function asPurserError(
  error: unknown,
  { baseUrl, signal, idempotencyKey, isAfterLost }: Attempt,
  timeout: AbortSignal,
): PurserError {
  if (error instanceof PurserError) return error
  signal?.throwIfAborted()
  const code = timeout.aborted ? 'timeout' : 'connection-failed'
  const why = timeout.aborted ? '' : causeOf(error)
  const facts = { code, cause: error, idempotencyKey, isAfterLost }
  return new ConnectionError(`No response from ${baseUrl} (${code}${why}).`, facts)
}

/** Node has the reason of a failed fetch in its cause, such as ECONNREFUSED. */
function causeOf(error: unknown): string {
  const { code, message } = Object(Object(error).cause)
  const cause = code ?? message
  return typeof cause === 'string' ? `: ${cause}` : ''
}

function readResponse(response: Response, text: string, attempt: Attempt): ServiceResponse {
  const body = response.headers.get('content-type')?.startsWith('text/csv') === true ? text : parse(text)
  const { idempotencyKey } = attempt
  if (response.ok && body !== notJson)
    return { status: response.status, headers: response.headers, body, idempotencyKey }
  if (response.ok) {
    const requestId = response.headers.get('x-request-id') ?? undefined
    const facts = { status: response.status, code: 'unreadable-answer', requestId, idempotencyKey }
    throw new UnavailableError('The answer is not JSON, so it is not from Purser.', facts)
  }
  throw refusalOf(response, body, attempt)
}

function refusalOf(
  { status, headers }: Response,
  body: unknown,
  { idempotencyKey, isAfterLost }: Attempt,
): PurserError {
  const problem = readProblem(body)
  const requestId = problem?.requestId ?? headers.get('x-request-id') ?? undefined
  const retryAfterSeconds = readRetryAfter(headers.get('retry-after'), new Date())
  return errorOf(status, { problem, requestId, retryAfterSeconds, idempotencyKey, isAfterLost })
}

const notJson = Symbol('not JSON')

function parse(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return notJson
  }
}

function queryOf(query: Readonly<Record<string, QueryValue>> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value instanceof Object && !Array.isArray(value))
      for (const [member, text] of Object.entries(value)) search.append(`${name}.${member}`, text)
    else if (value !== undefined) search.append(name, String(value))
  }
  return search.size === 0 ? '' : `?${search}`
}

/** 128 random bits per call. A key derived from the request would make two equal requests share one response. */
function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `sdk-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Waits, or throws the signal's reason as soon as it is aborted. */
export function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, delayMs)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
