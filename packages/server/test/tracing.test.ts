import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { sign } from './crash/load.ts'
import { endEveryService, spawnService, startService } from './crash/service.ts'
import { aDeployment, type Deployment, verifyBody } from './crash/stage.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { codeOf, request } from './world.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment
const files = mkdtempSync(path.join(tmpdir(), 'purser-files-'))
const cleanUps: (() => unknown)[] = []

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia' })
  // Not one of those that `endEveryService` removes: the marks of the witness are in it.
  const env = { SETTLE_WAIT_MS: '20000', WEBHOOKS_ALLOW_PRIVATE: 'true', FILES_DIR: files }
  deployment = await aDeployment({ databaseUrl: database.url, chain, env })
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  await endEveryService()
})
afterAll(async () => {
  await chain?.stop()
  await database?.drop()
  rmSync(files, { recursive: true })
})

/** `STATUS_CODE_ERROR` of OTLP. */
const failed = 2
const Value = z.object({ stringValue: z.string().optional(), intValue: z.union([z.number(), z.string()]).optional() })
const Attributes = z.array(z.object({ key: z.string(), value: Value }))
const ExportedSpan = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int(),
  attributes: Attributes,
  status: z.object({ code: z.int().optional() }).optional(),
})
type ExportedSpan = z.output<typeof ExportedSpan>
/** `ExportTraceServiceRequest` of OTLP 1.x, as JSON. */
const Export = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: Attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(ExportedSpan) })),
    }),
  ),
})

/** Starts a server that hands each body and its headers on, until the test is over. */
async function listen(take: (body: string, headers: IncomingHttpHeaders) => void): Promise<string> {
  const server = createServer(async (incoming, response) => {
    take(await text(incoming), incoming.headers)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUps.push(() => {
    server.closeAllConnections()
    return server.close()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}

async function startCollector() {
  const bodies: string[] = []
  const url = await listen((body) => bodies.push(body))
  const exported = () => bodies.flatMap((body) => Export.parse(JSON.parse(body)).resourceSpans)
  return {
    url,
    bodies,
    services: () =>
      exported().flatMap(({ resource }) =>
        resource.attributes.flatMap(({ key, value }) => (key === 'service.name' ? [value.stringValue] : [])),
      ),
    spans: () => exported().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
  }
}

const attribute = ({ attributes }: ExportedSpan, name: string) => {
  const value = attributes.find(({ key }) => key === name)?.value
  return value?.stringValue ?? value?.intValue
}

test('a request, its statements, its node calls and the delivery of its event are exported as traces, without secrets', async () => {
  const collector = await startCollector()
  const delivered: IncomingHttpHeaders[] = []
  const receiver = await listen((_, headers) => delivered.push(headers))
  const service = await spawnService({
    ...deployment.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: 'purser-test',
    OTEL_TRUST_CALLERS: 'true',
  }).up()
  const { testKey: key, wallet } = deployment
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    request(service.base, { key, method: 'POST', path, body, headers })
  const endpoint = { url: `${receiver}/hook`, events: ['payment.settled'] }
  expect((await post('/webhooks', endpoint)).status).toBe(201)
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const { credential } = await sign(deployment, 0)
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
  const verified = await post('/payments/verify', verifyBody(wallet.id, credential), { traceparent })
  const { paymentId, settlementToken } = verified.body
  expect((await post('/payments/settle', { paymentId, settlementToken })).body).toMatchObject({
    txHash: expect.stringMatching(/^0x/),
  })
  await expect.poll(() => delivered.length).toBe(1)
  expect(await service.end('SIGTERM')).toBe(0)

  const spans = collector.spans()
  const own = spans.filter((span) => span.traceId === traceId)
  const root = own.find((span) => span.name === 'POST /payments/verify')
  expect(root).toMatchObject({ parentSpanId: '00f067aa0ba902b7', kind: 2 })
  if (root === undefined) throw new Error('no span of the request')
  expect(
    ['http.response.status_code', 'purser.operation', 'purser.organisation.id'].map((name) => attribute(root, name)),
  ).toEqual([200, 'payments.verify', deployment.organisationId])
  expect(
    own.some((span) => /^insert payments/.test(span.name) || attribute(span, 'db.system.name') === 'postgresql'),
  ).toBe(true)
  expect(own.some((span) => attribute(span, 'rpc.method')?.toString().includes('eth_'))).toBe(true)

  const [, deliveryTrace, deliverySpan] = String(delivered[0]?.traceparent).split('-')
  const sent = spans.find((span) => span.traceId === deliveryTrace && span.spanId === deliverySpan)
  expect(sent).toMatchObject({ name: 'POST', kind: 3 })
  const runs = spans.filter((span) => span.name.startsWith('run '))
  expect(runs.some((span) => span.traceId === deliveryTrace)).toBe(true)
  const hasWork = ({ traceId: run }: ExportedSpan) =>
    spans.some(
      (span) =>
        span.traceId === run && (attribute(span, 'purser.rows_changed') !== undefined || span.status?.code === failed),
    )
  expect(runs.filter((run) => !hasWork(run)).map(({ name }) => name)).toEqual([])

  expect(new Set(collector.services())).toEqual(new Set(['purser-test']))
  const everything = collector.bodies.join('\n')
  for (const secret of [key, credential, String(settlementToken), '/hook']) expect(everything).not.toContain(secret)
})

test('a request to a partner is a part of the trace of the request that needs it, and passes the trace on, without key and path', async () => {
  const [collector, base] = [await startCollector(), await startChain({ network: 'base', blockTimeSeconds: 0.2 })]
  cleanUps.push(() => base.stop())
  const requested: IncomingHttpHeaders[] = []
  // With live keys a stale list of sanctions, as the bundled one, blocks transfers.
  await database.db.run(sql`update sanctions_lists set as_of = now()`)
  const partner = new URL(await listen((_, headers) => requested.push(headers)))
  const service = await startService({
    ...deployment.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_TRUST_CALLERS: 'true',
    RPC_URL_BASE: base.rpcUrl,
    LIFI_API_URL: `${partner.origin}/private-path`,
    LIFI_API_KEY: 'lifi-private-key',
  })
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    request(service.base, { key: deployment.liveKey, method: 'POST', path, body, headers })
  const wallet = await post('/wallet-infra/master-wallets', { chain: 'base', supportedTokens: ['USDC'] })
  expect([wallet.status, codeOf(wallet)]).toEqual([201, ''])
  const address = wallet.body.address as `0x${string}`
  await fundNative(base, address, 10n ** 18n)
  await fundToken(base, 'USDC', address, 1_000_000n)
  const traceId = '7a085853722dc6d2e1a1d6b5b2a5c0ff'
  const swapping = {
    fromWalletId: wallet.body.id,
    amount: '1',
    fromToken: 'USDC',
    toToken: 'ETH',
    toChain: 'base',
  }
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
  const wanted = { ...swapping, toAddress: address }
  const quoted = async () => codeOf(await post('/wallet-infra/transfer/quote', wanted, { traceparent }))
  await expect.poll(quoted, { timeout: 60_000, interval: 200 }).toBe('partner-unavailable')
  expect(await service.end('SIGTERM')).toBe(0)

  expect(requested[0]).toMatchObject({ 'x-lifi-api-key': 'lifi-private-key' })
  const [, passedTrace, passedSpan] = String(requested[0]?.traceparent).split('-')
  expect(passedTrace).toBe(traceId)
  const own = collector.spans().filter((span) => span.traceId === traceId)
  const sent = own.find((span) => span.spanId === passedSpan) ?? expect.unreachable('no span of the partner')
  expect(sent).toMatchObject({ name: 'GET', kind: 3 })
  expect(['server.address', 'server.port', 'http.response.status_code'].map((name) => attribute(sent, name))).toEqual([
    partner.hostname,
    Number(partner.port),
    200,
  ])
  const spans = new Map(own.map((span) => [span.spanId, span]))
  let top = sent
  for (let above = spans.get(sent.parentSpanId ?? ''); above !== undefined; above = spans.get(above.parentSpanId ?? ''))
    top = above
  expect(top).toMatchObject({ name: 'POST /wallet-infra/transfer/quote', kind: 2 })
  expect(collector.bodies.join('\n')).not.toContain('private')
})

test('a stranger’s traceparent neither decides that a request is recorded nor is continued', async () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: 'stranger=1' }
  const recorded = async (ratio: string) => {
    const collector = await startCollector()
    const service = await startService({
      ...deployment.env,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: ratio,
    })
    expect((await fetch(`${service.base}/organisations/current`, { headers })).status).toBe(401)
    expect(await service.end('SIGTERM')).toBe(0)
    return collector.spans().filter(({ name }) => name === 'GET /organisations/current')
  }
  expect(await recorded('0')).toEqual([])
  const [span, ...others] = await recorded('1')
  expect([span?.parentSpanId ?? '', span?.traceId === traceId, others]).toEqual(['', false, []])
})

test('a service whose collector never answers serves, and ends within its time', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  cleanUps.push(() => {
    silent.closeAllConnections()
    return silent.close()
  })
  const address = silent.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const env = { ...deployment.env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }
  const service = await startService(env)
  expect((await fetch(`${service.base}/healthz`)).status).toBe(200)
  expect(await service.end('SIGTERM')).toBe(0)
})

test.each([
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ['OTEL_TRUST_CALLERS', 'yes'],
])('%s=%s stops the start and names the setting', async (name, value) => {
  const started = spawnService({ ...deployment.env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', [name]: value })
  expect(await started.ended).toBe(1)
  expect(started.stderr()).toContain(`Purser did not start: ${name} `)
})
