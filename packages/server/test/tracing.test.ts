import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sign } from './crash/load.ts'
import { endEveryService, spawnService } from './crash/service.ts'
import { aDeployment, type Deployment, verifyBody } from './crash/stage.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { request } from './world.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment
const cleanUps: (() => unknown)[] = []

beforeAll(async () => {
  database = await freshDatabase()
  chain = await startChain({ network: 'base-sepolia' })
  const env = { SETTLE_WAIT_MS: '20000', WEBHOOKS_ALLOW_PRIVATE: 'true' }
  deployment = await aDeployment({ databaseUrl: database.url, chain, env })
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  await endEveryService()
})
afterAll(async () => {
  await chain?.stop()
  await database?.drop()
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
  const service = await spawnService(env).up()
  expect((await fetch(`${service.base}/healthz`)).status).toBe(200)
  expect(await service.end('SIGTERM')).toBe(0)
})

test.each([
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
])('%s=%s stops the start and names the setting', async (name, value) => {
  const started = spawnService({ ...deployment.env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', [name]: value })
  expect(await started.ended).toBe(1)
  expect(started.stderr()).toContain(`Purser did not start: ${name} `)
})
