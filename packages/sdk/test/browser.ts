/** A response as a script reads it: its status, its body, and the headers that CORS exposes. */
export interface Readable {
  readonly status: number
  readonly text: string
  readonly header: (name: string) => string | null
  /** As it came, for caches on the way, which see everything. */
  readonly raw: Headers
}

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const safeMethods = ['GET', 'HEAD', 'POST']
const safeRequestHeaders = ['accept', 'accept-language', 'content-language']
const safeContentTypes = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']
const safeResponseHeaders = [
  'cache-control',
  'content-language',
  'content-length',
  'content-type',
  'expires',
  'last-modified',
  'pragma',
]

/**
 * `fetch` of a script at an origin, in mode `cors` without credentials, as a browser does it: with a preflight where the request needs one,
 * and blocked where the answers do not allow it. Rejects with why the browser blocks.
 * Source: https://fetch.spec.whatwg.org, "HTTP-network-or-cache fetch", "CORS-preflight fetch" and "CORS check".
 */
export function browserAt(origin: string): (url: string, sent?: Sent) => Promise<Readable> {
  return async (url, { method = 'GET', headers = {}, body } = {}) => {
    const unsafe = Object.entries(headers)
      .filter(([name, value]) => !isSafeHeader(name, value))
      .map(([name]) => name.toLowerCase())
      .toSorted()
    if (!safeMethods.includes(method) || unsafe.length > 0) await preflight(url, { origin, method, unsafe })
    const response = await fetch(url, {
      method,
      headers: { ...headers, origin },
      redirect: 'manual',
      ...(body !== undefined && { body }),
    })
    check(response, origin)
    const exposed = listOf(response, 'access-control-expose-headers')
    const isExposed = (name: string) =>
      safeResponseHeaders.includes(name) || exposed.includes('*') || exposed.includes(name)
    return {
      status: response.status,
      text: await response.text(),
      header: (name) => (isExposed(name.toLowerCase()) ? response.headers.get(name) : null),
      raw: response.headers,
    }
  }
}

interface Planned {
  readonly origin: string
  readonly method: string
  readonly unsafe: readonly string[]
}

async function preflight(url: string, { origin, method, unsafe }: Planned): Promise<void> {
  const requested = unsafe.length > 0 && { 'access-control-request-headers': unsafe.join(',') }
  const response = await fetch(url, {
    method: 'OPTIONS',
    headers: { origin, accept: '*/*', 'access-control-request-method': method, ...requested },
    redirect: 'manual',
  })
  check(response, origin)
  if (!response.ok) throw new TypeError(`the preflight is ${response.status}`)
  const methods = (response.headers.get('access-control-allow-methods') ?? '').split(',').map((name) => name.trim())
  if (!safeMethods.includes(method) && !methods.includes(method) && !methods.includes('*'))
    throw new TypeError(`${method} is not allowed`)
  const allowed = listOf(response, 'access-control-allow-headers')
  // The wildcard covers every header but this one.
  const isAllowed = (name: string) => allowed.includes(name) || (name !== 'authorization' && allowed.includes('*'))
  for (const name of unsafe) if (!isAllowed(name)) throw new TypeError(`${name} is not allowed`)
}

function check({ headers }: Response, origin: string): void {
  const allowed = headers.get('access-control-allow-origin')
  if (allowed !== '*' && allowed !== origin) throw new TypeError(`${origin} may not read: ${allowed}`)
}

function isSafeHeader(name: string, value: string): boolean {
  const type = value.split(';')[0]?.trim().toLowerCase() ?? ''
  if (name.toLowerCase() === 'content-type') return safeContentTypes.includes(type)
  return safeRequestHeaders.includes(name.toLowerCase())
}

function listOf({ headers }: Response, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((part) => part.trim().toLowerCase())
}
