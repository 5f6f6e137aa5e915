import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { createPurser } from '@purser/sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ApiDocument, type Operation, type Parameter, recordedBody, resolved } from '../src/document.ts'
import { forReaders } from '../src/for-readers.ts'
import { type CodeSample, samplesOf } from '../src/samples.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const document: ApiDocument = JSON.parse(readFileSync(path.join(root, 'openapi.json'), 'utf8'))
const operations = Object.entries(document.paths).flatMap(([address, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ address, method: method.toUpperCase(), operation })),
)

interface Requested {
  readonly method: string
  readonly url: string
  readonly body: unknown
}

const seen: Requested[] = []
const server = createServer(async (request, response) => {
  const text = Buffer.concat(await request.toArray()).toString()
  const { method = '', url = '' } = request
  seen.push({ method, url, body: text === '' ? undefined : JSON.parse(text) })
  response.setHeader('content-type', 'application/json').end('[]')
})
let base: string

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  seen.length = 0
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

function sampleOf(operation: Operation, lang: CodeSample['lang']): string | undefined {
  return samplesOf(document, operation, base).find((sample) => sample.lang === lang)?.source
}

/** The request that the document shows for the operation. */
function shown({ address, method, operation }: (typeof operations)[number]): Requested {
  const exampleOf = ({ schema, name }: Parameter): string => {
    const { example, enum: values, format } = resolved(document.components.schemas, schema) ?? {}
    return String(example ?? values?.[0] ?? (format === 'date-time' ? '2026-11-22T12:00:00.000Z' : `<${name}>`))
  }
  const parameters = (operation.parameters ?? []).flatMap((one) => resolved(document.components.parameters, one) ?? [])
  const filled = parameters
    .filter((one) => one.in === 'path')
    .reduce((url, one) => url.replace(`{${one.name}}`, encodeURIComponent(exampleOf(one))), address)
  const query = parameters.filter((one) => one.in === 'query' && one.required === true)
  const search = new URLSearchParams(query.map((one) => [one.name, exampleOf(one)])).toString()
  return { method, url: search === '' ? filled : `${filled}?${search}`, body: recordedBody(document, operation) }
}

/** A client may send an empty body where the operation has none, and gives a list its own page size. */
function comparable({ method, url, body }: Requested): Requested {
  const empty = typeof body === 'object' && body !== null && Object.keys(body).length === 0
  const { pathname, searchParams } = new URL(url, base)
  searchParams.delete('limit')
  searchParams.sort()
  return { method, url: `${pathname}?${searchParams}`, body: empty ? undefined : body }
}

const expected = operations
  .filter(({ operation }) => samplesOf(document, operation, 'https://x').length > 0)
  .map((one) => ({ ...one, request: shown(one) }))

test('most operations have samples: only those of files and event streams have none', () => {
  const none = operations.filter(({ operation }) => samplesOf(document, operation, 'https://x').length === 0)
  expect(none.map(({ operation }) => operation.operationId)).toEqual([
    'vaults.files.add',
    'vaults.files.get',
    'vaults.events',
    'events.stream',
  ])
})

test('every TypeScript sample sends the request that the document shows', async () => {
  const purser = createPurser({ apiKey: 'svc_test_sk_x', baseUrl: base, maxRetries: 0 })
  for (const { operation, request } of expected) {
    seen.length = 0
    const call = sampleOf(operation, 'typescript')?.split('\n').slice(3).join('\n')
    const run: unknown = new Function('purser', `return (async () => {${call}})()`)(purser)
    // The answer is empty, which is not what some methods read. What counts is the request.
    await Promise.resolve(run).catch(() => undefined)
    expect([operation.operationId, seen.slice(0, 1).map(comparable)]).toEqual([
      operation.operationId,
      [comparable(request)],
    ])
  }
})

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0

test.skipIf(!hasPython)('every Python sample sends the request that the document shows', async () => {
  const program = expected.map(({ operation }) => {
    const source = sampleOf(operation, 'python') ?? ''
    const lines = source.trimEnd().split('\n').slice(4)
    return `try:\n${lines.map((line) => `    ${line}`).join('\n')}\nexcept (KeyError, AttributeError, TypeError, PurserError) as error:\n    print(${JSON.stringify(operation.operationId)}, repr(error))\n`
  })
  const opening = `from purser import Purser, PurserError\npurser = Purser("svc_test_sk_x", "${base}")\n`
  const { stdout } = await promisify(execFile)('python3', ['-c', opening + program.join('')], {
    env: { ...process.env, PYTHONPATH: path.join(root, 'packages/python/src'), PYTHONDONTWRITEBYTECODE: '1' },
  })
  expect([stdout, seen.map(comparable)]).toEqual(['', expected.map(({ request }) => comparable(request))])
})

test('readers see the errors of an operation at its answers, and events apart from the operations of webhooks', () => {
  const { paths, tags, webhooks, servers } = forReaders(document, 'https://pay.example.com')
  expect(servers).toEqual([{ url: 'https://pay.example.com' }])
  expect(paths['/payments/{id}']?.get?.summary).toBe('Get one payment')
  expect(JSON.stringify(paths['/payments/{id}']?.get?.responses['404'])).toContain(
    '`payment-not-found`: Payment Not Found.',
  )
  expect(tags.at(-1)).toMatchObject({ name: 'event payloads', 'x-displayName': 'Event payloads' })
  expect(webhooks['payment.settled']?.post).toMatchObject({ tags: ['event payloads'], summary: 'payment.settled' })
})
