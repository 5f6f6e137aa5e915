import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { context, propagation, trace } from '@opentelemetry/api'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { startTracing, type Tracing } from '../../src/platform/tracing/tracing.ts'
import { formOf, upload } from '../files/uploads.ts'
import { aKeptLog } from '../log-lines.ts'
import { aMailbox, type Mailbox } from '../mailbox.ts'
import { aBrowser, aLink, ownerOf, press } from '../people.ts'
import { aWorld, type Org, type World } from '../world.ts'

const { lines, log } = aKeptLog()
const marker = (name: string) => `mark${name}${randomBytes(9).toString('hex')}`
/** Every secret of the test, by name. */
const secrets = new Map<string, string>()
const rpcKey = marker('rpc')
const smtpPassword = marker('smtp')
let world: World
let mailbox: Mailbox
let org: Org

/** What the collector of traces got. */
const exported: string[] = []
const collector = createServer(async (request, response) => {
  exported.push(JSON.stringify(request.headers), await text(request))
  response.end('{}')
})
let tracing: Tracing | undefined

/** The exporter reads the environment itself. */
async function traced(): Promise<void> {
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  const address = collector.address()
  const port = typeof address === 'object' ? address?.port : undefined
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${port}`)
  tracing = await startTracing(process.env)
}

beforeAll(async () => {
  await traced()
  mailbox = await aMailbox()
  secrets.set('the key in the address of a node', rpcKey)
  secrets.set('the password of the mail server', smtpPassword)
  const smtp = { url: `smtp://user:${smtpPassword}@127.0.0.1:1`, from: 'purser@example.com' }
  world = await aWorld({
    rpcUrls: { 'base-sepolia': [`http://user:${rpcKey}@127.0.0.1:1/v2/${rpcKey}`] },
    config: { signIn: { isSignUpOpen: false, issuers: [], smtp }, webhooksAllowPrivate: true, accessLog: true },
    boot: { log },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await mailbox?.stop()
  for (const api of [trace, context, propagation]) api.disable()
  collector.closeAllConnections()
  collector.close()
  vi.unstubAllEnvs()
})

function keep(name: string, value: unknown): string {
  const secret = z.string().min(8).parse(value)
  secrets.set(name, secret)
  return secret
}

async function call(method: string, path: string, body?: unknown, key = org.testKey) {
  const headers = method === 'POST' ? { 'idempotency-key': randomBytes(9).toString('hex') } : {}
  return (await world.call(key, method, path, body, headers)).body
}

/** Bytes that are not HTTP, and requests with secrets in places where none belong. */
async function misuse(key: string): Promise<void> {
  for (const path of [
    `/nowhere/${key}`,
    `/vaults/${key}`,
    `/vaults?cursor=${key}`,
    `/events/stream?ticket=${key}`,
    `/${key}?token=${key}`,
  ])
    await world.call(key, 'GET', path)
  await world.call(key, 'POST', '/vaults', { [key]: key, metadata: { key } })
  await world.call(key, 'POST', '/payments/verify', { protocol: 'x402', credential: key, price: '0.01', walletId: key })
  await world.call(org.testKey, 'POST', '/vaults', {}, { 'idempotency-key': `x${'\u00e9'}` }).catch(() => undefined)
  const socket = connect(Number(new URL(world.base).port), '127.0.0.1').on('error', () => undefined)
  socket.end(
    `GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nauthorization: Bearer ${key}\r\nbad header ${key}\r\n\r\n`,
  )
  await new Promise((resolve) => socket.once('close', resolve).resume())
}

/** Everything in the database, as text: `bytea` as it was stored, in every encoding that a reader would try. */
async function stored(): Promise<string> {
  const { db } = world.database
  const tables = await db.many(
    z.object({ name: z.string() }),
    sql`
    select format('%I.%I', table_schema, table_name) as name from information_schema.tables
    where table_schema in ('public', 'auth') and table_type = 'BASE TABLE'`,
  )
  const texts = []
  for (const { name } of tables) {
    const rows = await db.many(z.object({ row: z.string() }), {
      text: `select t::text as row from ${name} t`,
      values: [],
    } as never)
    texts.push(...rows.map(({ row }) => `${name}: ${row}`))
  }
  return texts.join('\n')
}

test('no secret reaches a log line, a trace, the database or the metrics', async () => {
  keep('an API key', org.testKey)
  keep('a live key', org.liveKey)
  keep(
    'a key made by a key',
    (await call('POST', '/organisations/current/api-keys', { name: 'x', environment: 'test' })).key,
  )
  const founded = await call('POST', '/organisations', { name: 'Second' })
  keep('the first key of an organisation', z.array(z.object({ key: z.string() })).parse(founded.apiKeys)[0]?.key)
  const vaultId = String((await call('POST', '/vaults', {})).id)
  const token = keep('a vault token', (await call('POST', `/vaults/${vaultId}/tokens`, {})).token)
  const ticket = keep('a ticket', (await call('POST', `/vaults/${vaultId}/tokens`, { kind: 'ticket' })).token)
  await fetch(`${world.base}/vaults/${vaultId}`, { headers: { authorization: `Bearer ${token}` } })
  const stream = new AbortController()
  await fetch(`${world.base}/vaults/${vaultId}/events?ticket=${ticket}`, { signal: stream.signal })
  stream.abort()
  const body = formOf({ filename: 'a.txt', content: 'content' })
  const file = await upload(world.base, { key: org.testKey, vaultId, body, headers: { 'idempotency-key': 'file' } })
  const url = new URL(String(file.body.url))
  keep('the signature of a file link', url.searchParams.get('signature'))
  await fetch(world.base + url.pathname + url.search)
  await fetch(`${world.base}${url.pathname}${url.search}x`)

  const hookKey = marker('hook')
  const hook = await call('POST', '/webhooks', { url: `http://127.0.0.1:1/${hookKey}`, events: ['*'] })
  keep('a webhook secret', hook.secret)
  keep('a rotated webhook secret', (await call('POST', `/webhooks/${hook.id}/rotate-secret`)).secret)
  keep('the secret of a listener', (await call('POST', '/events/listener')).secret)
  await call('POST', `/webhooks/${hook.id}/test`)

  const wallet = await world.wallet(org)
  const paid = await call('POST', '/payments/verify', {
    protocol: 'x402',
    credential: 'stub_payment_accepted',
    price: '0.01',
    walletId: wallet.id,
    resource: 'https://seller.example/paid',
  })
  keep('a settlement token', paid.settlementToken)
  keep('a session token', (await call('POST', '/sessions', { paymentId: paid.paymentId })).sessionToken)
  await call('POST', '/payments/settle', { paymentId: paid.paymentId, settlementToken: paid.settlementToken })
  await call('POST', '/payments/settle', { paymentId: paid.paymentId, settlementToken: `${paid.settlementToken}x` })
  const account = keep('a bank account number', '31926819')
  await call('POST', '/wallet-infra/bank-accounts', {
    accountName: 'A',
    sortCode: '200000',
    accountNumber: account,
    currency: 'GBP',
  })
  await call('POST', '/wallet-infra/master-wallets', { chain: 'base', supportedTokens: ['USDC'] })

  const email = await ownerOf(world, org.id)
  const link = await aLink(world, email)
  keep('a sign-in link', new URL(link).searchParams.get('token'))
  await press(world, link)
  await press(world, `${link}x`)
  const person = await aBrowser(world, { email, organisationId: org.id })
  keep('the cookie of a session', person.cookie.split('=')[1])
  const post = (path: string, body: unknown, base = world.base) =>
    fetch(base + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'http://dashboard.test' },
      body: JSON.stringify(body),
    })
  const secondEmail = await ownerOf(world, (await world.organisation()).id)
  await press(world, await aLink(world, secondEmail))
  await post('/auth/sign-in/link', { email })
  await post('/auth/request-password-reset', { email })
  const smtp = { url: mailbox.url, from: 'purser@example.com' }
  const mailing = await world.another({ role: 'api', signIn: { isSignUpOpen: false, issuers: [], smtp } })
  await post('/auth/request-password-reset', { email: secondEmail }, mailing.base)
  keep('a link to a new password', /reset-password\/([\w-]+)/.exec(await mailbox.newest(secondEmail))?.[1])
  await post('/auth/sign-in/link', { email: secondEmail }, mailing.base)
  keep('a sign-in link by mail', /token=([\w-]+)/.exec(await mailbox.newest(secondEmail))?.[1])
  const password = keep('a password', marker('pass'))
  await post('/auth/sign-in/email', { email, password })
  await post('/auth/reset-password', { token: marker('no'), newPassword: password })
  for (const key of [org.testKey, token]) await misuse(key)
  await call('GET', `/wallet-infra/byo-wallets/${wallet.id}/balances`)
  await expect.poll(() => lines.some((line) => line.includes('could not be sent'))).toBe(true)
  await expect
    .poll(async () => (await world.call(org.testKey, 'GET', `/webhooks/${hook.id}/attempts`)).list.length)
    .toBeGreaterThan(0)
  await expect
    .poll(async () => (await world.call(org.testKey, 'GET', '/requests?limit=500')).list.length)
    .toBeGreaterThan(30)

  await tracing?.stop()
  expect(exported.join()).toContain('POST /payments/verify')
  const places = {
    traces: exported.join('\n'),
    log: lines.join('\n'),
    metrics: await (await fetch(`${world.base}/metrics`)).text(),
    database: await stored(),
    requests: JSON.stringify((await world.call(org.testKey, 'GET', '/requests?limit=500')).list),
    audit: JSON.stringify((await world.call(org.testKey, 'GET', '/organisations/current/audit-log?limit=500')).list),
    attempts: JSON.stringify((await world.call(org.testKey, 'GET', `/webhooks/${hook.id}/attempts`)).list),
  }
  if ('base64' in world.config.keyEncryption) keep('the key-encryption key', world.config.keyEncryption.base64)
  const found = [...secrets].flatMap(([name, secret]) =>
    Object.entries(places).flatMap(([place, text]) =>
      [
        secret,
        encodeURIComponent(secret),
        Buffer.from(secret).toString('hex'),
        Buffer.from(secret).toString('base64').replace(/=*$/, ''),
      ]
        .filter((form) => text.includes(form))
        .map(
          (form) =>
            `${name} in ${place}: ${text.slice(Math.max(0, text.indexOf(form) - 160), text.indexOf(form) + 40)}`,
        ),
    ),
  )
  expect(found).toEqual([])
  expect(places.log.includes(hookKey), 'the address of a webhook may hold a token').toBe(false)
})
