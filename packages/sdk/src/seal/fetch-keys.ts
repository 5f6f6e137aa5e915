import { isConfidential } from '@purser/protocol'
import { must, mustCount, mustFunctions, mustKnow } from '../check.ts'
import { timeLimit } from '../time-limit.ts'
import { type Jwks, readJwks } from './keys.ts'

export type FetchKeysOptions = {
  /** A custom `fetch`, for proxies and tests. */
  readonly fetch?: typeof globalThis.fetch | undefined
  readonly signal?: AbortSignal | undefined
  /** Timeout of the whole request. Default: 10 s. */
  readonly timeoutMs?: number | undefined
}

/**
 * The key set could not be fetched. This says nothing about any proof.
 *
 * @example
 * import { fetchKeys, KeysUnavailableError } from '@purser/sdk/seal'
 *
 * export async function keysOrNone(baseUrl: string) {
 *   try {
 *     return await fetchKeys(baseUrl)
 *   } catch (error) {
 *     if (error instanceof KeysUnavailableError) return []
 *     throw error
 *   }
 * }
 */
export class KeysUnavailableError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'KeysUnavailableError'
  }
}

const keySetBytesMax = 262_144

/**
 * Fetches the keys of the service at this address from `/.well-known/jwks.json`. Each has its full name
 * (`did:web:pay.example.com#seal-1`), so that statements by other signers do not pass. The address is the trust
 * anchor: https, or http on this machine, without redirects. Throws a `TypeError` for another address, and a
 * `KeysUnavailableError` if there is no key set. Retired keys are included. Store the result to verify without a
 * network. Source: RFC 7517; did:web.
 *
 * @example
 * import { fetchKeys } from '@purser/sdk/seal'
 *
 * const keys = await fetchKeys('https://pay.example.com')
 */
export async function fetchKeys(baseUrl: string, options: FetchKeysOptions = {}): Promise<Jwks> {
  checkOptions(options)
  const base = trustworthy(baseUrl)
  const text = await textOf(`${base.origin}${base.pathname.replace(/\/+$/, '')}/.well-known/jwks.json`, options)
  const signer = didOf(base)
  const keys = (readJwks(jsonOf(text)) ?? []).flatMap(({ kid, x }) => {
    const name = kid.includes('#') ? kid : `${signer}#${kid}`
    return name.startsWith(`${signer}#`) ? [{ kty: 'OKP', crv: 'Ed25519', kid: name, x }] : []
  })
  if (keys.length === 0)
    throw new KeysUnavailableError('The response is not a JSON Web Key Set with an Ed25519 key of this service.')
  return { keys }
}

function checkOptions(options: FetchKeysOptions): void {
  mustKnow(options, { fetch: true, signal: true, timeoutMs: true }, 'The second argument')
  const { fetch, signal, timeoutMs } = options
  mustFunctions({ fetch })
  must(signal === undefined || signal instanceof AbortSignal, 'signal', signal, 'Give an AbortSignal.')
  mustCount('timeoutMs', timeoutMs, 1)
}

function trustworthy(baseUrl: string): URL {
  const url = typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  const remedy = 'Give the address of the service: https, such as https://pay.example.com, or http on this machine.'
  must(url !== undefined && isConfidential(url), 'baseUrl', baseUrl, remedy)
  return url
}

/** The name that the service signs with. Source: did:web, section "Create (Register)". */
function didOf({ host, pathname }: URL): string {
  const path = pathname.split('/').filter((part) => part !== '')
  return ['did', 'web', ...[host, ...path].map(encodeURIComponent)].join(':')
}

async function textOf(url: string, { fetch: other, signal, timeoutMs = 10_000 }: FetchKeysOptions): Promise<string> {
  const send = other ?? ((input, init) => fetch(input, init))
  const limit = timeLimit(timeoutMs, signal)
  try {
    const response = await send(url, {
      redirect: 'error',
      signal: limit.signal,
      headers: { accept: 'application/json' },
    })
    if (response.status === 200) return await boundedText(response)
    await response.body?.cancel()
    throw new KeysUnavailableError(`The request for the key set failed with status ${response.status}.`)
  } catch (error) {
    if (error instanceof KeysUnavailableError) throw error
    throw new KeysUnavailableError('The key set could not be fetched.', error)
  } finally {
    limit.end()
  }
}

async function boundedText(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let bytes = 0
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    bytes += read.value.length
    if (bytes > keySetBytesMax) {
      await reader?.cancel()
      throw new KeysUnavailableError('The key set is too large.')
    }
    text += decoder.decode(read.value, { stream: true })
  }
  return text + decoder.decode()
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new KeysUnavailableError('The key set is not JSON.', error)
  }
}
