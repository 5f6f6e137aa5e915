import { readFileSync } from 'node:fs'
import { withoutReferences } from '@purser/protocol'
import { expect, test } from 'vitest'
import { createPurser } from '../src/index.ts'
import { isRecord } from '../src/problem.ts'
import { apiKey } from './fake-purser.ts'

interface Parameter {
  readonly in: string
  readonly name: string
}

interface Documented {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly hasBody: boolean
  /** Whether the body is a file in a form. */
  readonly isUpload: boolean
  readonly isList: boolean
  /** Whether it answers events, and is read with `for await` too. */
  readonly isLive: boolean
}

const documented = readDocument()
/** What writes nothing needs no key kept for it. */
const keyless = ['payments.challenge', 'sessions.verify']
const named = (operation: Documented, place: string): string[] =>
  operation.parameters.filter((parameter) => parameter.in === place).map(({ name }) => name)

test.each(documented.map((operation) => [operation.id, operation] as const))(
  '%s is the method of that name, and sends what the document says',
  async (_id, operation) => {
    const { sent, purser } = recordingClient()
    const body = { a: 1 }
    const query = Object.fromEntries(queryNames(operation).map((name) => [name, `a ${name}`]))
    const inPath = named(operation, 'path').map((name) => [name, `an/${name}`] as const)

    const given = operation.isUpload ? new Blob(['a file']) : body
    const inputs = operation.hasBody ? [given] : queryNames(operation).length > 0 ? [query] : []
    const options = { headers: { 'x-option': 'passed on' } }
    const values = [...inPath.map(([, value]) => value), ...inputs, options]
    const outcome: unknown = Reflect.apply(methodOf(purser, operation.id), undefined, values)
    await (operation.isList ? firstPage(outcome) : operation.isLive ? allOf(outcome) : outcome)

    const filled = inPath.reduce(
      (path, [name, value]) => path.replace(`{${name}}`, encodeURIComponent(value)),
      operation.path,
    )
    expect(sent).toHaveLength(1)
    const [{ url, method, headers, text } = nothing] = sent
    expect(`${method} ${url.pathname}`).toBe(`${operation.method} ${filled}`)
    expect(Object.fromEntries(url.searchParams)).toEqual(query)
    if (operation.isUpload) expect(text).toContain('\r\n\r\na file\r\n')
    else expect(text === undefined ? undefined : JSON.parse(text)).toEqual(operation.hasBody ? body : undefined)
    const isKeyed = named(operation, 'header').includes('Idempotency-Key') && !keyless.includes(operation.id)
    expect(headers.has('idempotency-key')).toBe(isKeyed)
    expect(headers.get('x-option')).toBe('passed on')
  },
)

test('a list and a stream of events, and nothing else, are read with for await', () => {
  expect(documented.filter(({ isList }) => isList).length).toBeGreaterThan(0)
  for (const operation of documented) {
    const { purser } = recordingClient()
    const values = named(operation, 'path').map(() => 'an-id')
    const outcome: unknown = Reflect.apply(methodOf(purser, operation.id), undefined, values)
    const isListing = outcome instanceof Object && Symbol.asyncIterator in outcome
    if (outcome instanceof Promise) outcome.catch(() => {})
    expect([operation.id, isListing]).toEqual([operation.id, operation.isList || operation.isLive])
  }
})

test('the client has no method that the document does not know', () => {
  const own = ['csv', 'list', 'payments.challenges', 'request', 'wallets.payUrl']
  expect(methodNames(recordingClient().purser).sort()).toEqual([...documented.map(({ id }) => id), ...own].sort())
})

/** Links and tickets give access without a key. A header says where an event stream resumes. */
const notOfTheClient = ['expires', 'by', 'signature', 'ticket', 'lastEventId']

function queryNames(operation: Documented): string[] {
  return named(operation, 'query').filter((name) => !notOfTheClient.includes(name))
}

interface Sent {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly text: string | undefined
}

const nothing: Sent = { url: new URL('http://nothing.test'), method: '', headers: new Headers(), text: undefined }

/** A client whose requests go nowhere; each is answered as the money operations need it, lists as empty. */
function recordingClient() {
  const sent: Sent[] = []
  const record: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const text =
      typeof init?.body === 'string' ? init.body : init?.body instanceof Blob ? await init.body.text() : undefined
    const headers = new Headers(init?.headers)
    sent.push({ url, method: init?.method ?? 'GET', headers, text })
    if (headers.get('accept') === 'text/event-stream') return new Response(null, { status: 204 })
    return Response.json(/^\/(payments|sessions)/.test(url.pathname) && init?.method === 'POST' ? believable : [])
  }
  return { sent, purser: createPurser({ apiKey, baseUrl: 'https://purser.test', fetch: record, maxRetries: 0 }) }
}

const believable = {
  ...{ x402: null, x402V1: null, mpp: null, expiresAt: '2026-11-21T00:00:00.000Z' },
  ...{ valid: true, paymentId: 'pay_1', protocol: 'x402', amount: '1', coin: 'USDC', settlementToken: 'secret' },
  ...{ scheme: 'exact', network: 'eip155:84532', redeemable: false },
  ...{ settlementPending: true, status: 'settling', redemptionToken: 'secret', expiresIn: 60 },
  ...{ sessionId: 'sess_1', vaultId: 'vlt_1', isExpired: false, sessionToken: 'secret' },
}

function methodOf(purser: unknown, id: string): (...values: never[]) => unknown {
  const found = id.split('.').reduce((at: unknown, name) => (isRecord(at) ? at[name] : undefined), purser)
  if (typeof found !== 'function') throw new Error(`The client has no method ${id}.`)
  return (...values) => Reflect.apply(found, undefined, values)
}

async function firstPage(listing: unknown): Promise<void> {
  if (!isRecord(listing) || typeof listing.page !== 'function') throw new Error('That is no listing.')
  await listing.page()
}

async function allOf(events: unknown): Promise<void> {
  if (!(events instanceof Object && Symbol.asyncIterator in events)) throw new Error('That is no stream of events.')
  const iterate: unknown = events[Symbol.asyncIterator]
  if (typeof iterate !== 'function') throw new Error('That is no stream of events.')
  await Reflect.apply(iterate, events, []).next()
}

function methodNames(at: object, before: readonly string[] = []): string[] {
  return Object.entries(at).flatMap(([name, value]) =>
    typeof value === 'function' ? [[...before, name].join('.')] : methodNames(Object(value), [...before, name]),
  )
}

function readDocument(): Documented[] {
  const document: unknown = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
  const paths = isRecord(document) ? Object(withoutReferences(document.paths, document)) : {}
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(isRecord(item) ? item : {}).map(([method, operation]) => readOperation(path, method, operation)),
  )
}

function readOperation(path: string, method: string, operation: unknown): Documented {
  if (!isRecord(operation) || typeof operation.operationId !== 'string') throw new Error(`${method} ${path} has no id.`)
  const parameters = Array.isArray(operation.parameters) ? operation.parameters.filter(isParameter) : []
  return {
    id: operation.operationId,
    method: method.toUpperCase(),
    path,
    parameters,
    hasBody: operation.requestBody !== undefined,
    isUpload: JSON.stringify(operation.requestBody ?? null).includes('"multipart/form-data"'),
    isLive: JSON.stringify(operation.responses ?? null).includes('"text/event-stream"'),
    isList: parameters.some(({ name }) => name === 'cursor'),
  }
}

function isParameter(value: unknown): value is Parameter {
  return isRecord(value) && typeof value.in === 'string' && typeof value.name === 'string'
}
